"""Communication with a service: REST and the control API (`call`, `client`, over `http`), the WebSocket, and tokens."""
