"""Shared by HTTP and WebSockets: JSON, error bodies, URLs, checks of texts, and write coalescing."""
