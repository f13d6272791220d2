"""PINs that link a game to a broadcaster's channel, and the access and refresh tokens of linked games."""
