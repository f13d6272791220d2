"""Texts from elsewhere: streams and answers of a service, bounded before they are parsed, and JSON that is none."""
