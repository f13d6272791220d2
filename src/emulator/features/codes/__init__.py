"""Reward codes: sets of codes, grants to users, and handing out each code once (rulings C1 to C6)."""
