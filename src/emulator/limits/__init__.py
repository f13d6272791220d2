"""Limits on a client's requests per second, connections and ids."""
