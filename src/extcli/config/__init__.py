"""What the user has configured: settings and where each comes from (`resolver`), profiles, secrets (`secret_lookup`)
and stored links.
"""
