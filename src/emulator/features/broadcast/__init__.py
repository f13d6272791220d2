"""Developer-named events: from a broadcaster or backend to whoever follows them."""
