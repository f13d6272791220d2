"""The user's configuration: settings and their origins (`resolver`), profiles, secrets (`secret_lookup`) and stored
links.
"""
