"""The open connections of a service: their callers and subscriptions, closing and stalling them."""
