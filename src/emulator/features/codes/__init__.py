"""Reward codes: sets of them, who may have one, and handing each out exactly once."""
