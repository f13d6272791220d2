"""The user's configuration: settings and secrets with their origins (`resolver`), profiles, and stored links."""
