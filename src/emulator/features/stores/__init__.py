"""Config and state stores, and the JSON store (rulings S1 to S6)."""
