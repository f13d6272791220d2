"""Runs the service: opens it, listens, stops at signals, and logs its start."""
