"""Calls of the service API as any caller, for people and tools that hold no token."""
