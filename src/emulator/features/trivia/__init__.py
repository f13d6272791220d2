"""Trivia: an extension's questions, the votes of its viewers, and the teams that score."""
