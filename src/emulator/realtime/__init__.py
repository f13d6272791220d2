"""WebSockets: the connections of a service (`gateway`), which may open (`admission`), one connection (`websocket`), its
`handshake` and `session`, actions by name (`dispatch`), subscribers (`hub`), updates (`publisher`), the Pusher protocol
for pages (`pusher`), and the topics that a page may follow (`page_access`).
"""
