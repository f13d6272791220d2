"""The features: one folder each, with pure rules, a service, and its endpoints and socket actions."""
