"""Users: sandbox tokens, `user_info`, and the ids that users shared."""
