"""Tokens: verifying those that clients send, and signing those that the service issues."""
