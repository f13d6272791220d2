"""What both transports share: JSON, error bodies, queries, and write coalescing."""
