"""WebSockets: all connections of a service (`gateway`), limits on opening them (`admission`), one connection
(`websocket`) and its `session`, the call of actions (`dispatch`), subscribers (`hub`), updates
(`publisher`), the connections of pages by the Pusher protocol (`pusher`), the topics that a page may follow
(`pusher_access`), and faults of messages (`faulty_messages`).
"""
