"""The open connections of a service: who they are, what they follow, closing and stalling them."""
