"""What the service says of itself: the log, ids of requests, counts, spans."""
