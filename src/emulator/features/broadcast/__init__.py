"""Broadcasts: developer-named events for the subscribers of a channel or an extension."""
