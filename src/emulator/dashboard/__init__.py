"""The dashboard: pages that show the running service, for a browser on the same machine. Sandbox only."""
