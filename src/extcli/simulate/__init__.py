"""Crowds with exact results: what will be sent and must come out (`plan`), sending it at planned instants (`pool`),
comparing (`outcome`), and reports.
"""
