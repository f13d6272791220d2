"""Processes of this machine: a service for one command, and the services that run under a name."""
