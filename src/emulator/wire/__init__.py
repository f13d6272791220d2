"""Shared by HTTP and WebSockets: JSON, error bodies, query strings, checks of texts, and write coalescing."""
