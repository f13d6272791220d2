"""How extcli speaks to a service: REST (`client`), the control API (`control`), what sends them (`call`,
`signed_calls`, `http`), the WebSocket (`websocket`, `envelope`), and the tokens that all need.
"""
