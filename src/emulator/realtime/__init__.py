"""The socket: connections, the envelope, what a session may do, and who is told what. Knows no feature."""
