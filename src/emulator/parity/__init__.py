"""Compares the sandbox's answer to a request with that of production."""
