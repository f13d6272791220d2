"""Who the service's users are: sandbox tokens, `user_info`, and the ids that users shared."""
