"""How extcli speaks to a service: REST, the WebSocket, and the tokens that both need."""
