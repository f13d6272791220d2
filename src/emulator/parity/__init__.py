"""Compares the sandbox's responses with production's."""
