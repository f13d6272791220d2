"""Crowds with exact results: what they will send, sending it at planned instants, and checking the outcome."""
