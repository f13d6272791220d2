"""WebSockets of games and pages.

All connections of a service (`gateway`), limits on opening them (`admission`), one connection (`websocket`), its
queue of messages (`peer`) and a game's `session`, the call of actions (`dispatch`), subscribers (`hub`), updates
(`publisher`), pages, which speak the Pusher protocol (`web_page_connection`), and faults of messages
(`faulty_messages`).
"""
