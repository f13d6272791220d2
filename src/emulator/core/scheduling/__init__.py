"""Runs callbacks at an instant of the service's clock, or at most once per interval."""
