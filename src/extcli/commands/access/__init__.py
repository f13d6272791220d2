"""Commands for tokens, links and connections."""
