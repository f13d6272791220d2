"""Lists of the stored data, over all extensions and channels, and of the next expiries."""
