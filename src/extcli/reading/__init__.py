"""Reads untrusted texts: streams and responses, limited before they are parsed, and errors about malformed JSON."""
