"""What the user has configured: settings, profiles, secrets and stored links."""
