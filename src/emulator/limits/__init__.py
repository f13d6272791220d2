"""What one client may use: requests per second, connections, and ids."""
