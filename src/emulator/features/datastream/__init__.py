"""The datastream: events from pages to the games of their channel."""
