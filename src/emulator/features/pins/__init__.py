"""PINs and what they lead to: a game linked to a broadcaster's channel, its access and refresh tokens."""
