"""The file of registered extensions: reading and editing it."""
