"""What the service holds, over all extensions and channels, and what expires next."""
