"""Snapshots: all data of a service as one JSON document, written and loaded as a stream."""
