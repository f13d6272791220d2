"""HTTP: routing, dispatch to the features' endpoints, and replies. Independent of the features."""
