"""The extensions file: reading and editing it."""
