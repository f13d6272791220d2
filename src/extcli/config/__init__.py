"""What the user has configured: settings, profiles, secrets and kept links."""
