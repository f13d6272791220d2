"""WebSockets: all connections of a service (`gateway`), limits on opening them (`admission`), one connection
(`websocket`), its `handshake` and `session`, the call of actions (`dispatch`), subscribers (`hub`), updates
(`publisher`), the Pusher protocol for pages (`pusher`), and the topics that a page may follow (`page_access`).
"""
