"""Files of snapshots: reading, writing, describing and comparing them. Knows the format, not the service."""
