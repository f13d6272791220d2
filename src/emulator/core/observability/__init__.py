"""Logs, request ids, the access log, audit lines, and masking of secrets."""
