"""WebSockets: connections, sessions, the message envelope, and publishing. Independent of the features."""
