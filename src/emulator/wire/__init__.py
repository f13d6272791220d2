"""Shared by HTTP and WebSockets: JSON, error bodies, query strings, and write coalescing."""
