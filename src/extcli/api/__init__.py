"""Communication with a service: REST (`client`), the control API (`control`), sending of calls (`call`, `signed_calls`,
`http`), the WebSocket (`websocket`, `envelope`), and tokens.
"""
