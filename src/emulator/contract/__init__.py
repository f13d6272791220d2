"""Facts shared by the service and the command line: names, limits, rules of parity, faults, and files that both read.

It imports nothing of either.
"""
