"""What the specification promises: a folder for each feature, with rules, a service, and its endpoints and actions."""
