"""Rankings: the most frequent free-text answers to a question (ruling R1)."""
