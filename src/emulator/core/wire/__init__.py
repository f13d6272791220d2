"""Shared by HTTP and WebSockets: JSON, error bodies, URLs, cursors, checks of texts, and short reads."""
