"""The specified features: a folder for each, with rules, a service, and its endpoints and actions."""
