"""Verification of clients' tokens, and signing of the service's own."""
