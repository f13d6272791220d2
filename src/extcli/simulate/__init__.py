"""Crowds with exact results: planning requests, sending them at planned instants, and checking the outcome."""
