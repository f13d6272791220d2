"""What the service and the command line both state: names, limits, rules of parity, faults, and files that both read.

It imports nothing of either.
"""
