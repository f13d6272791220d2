"""Commands that run a service on this machine, and control it."""
