"""Simulated crowds with exact results: the plan (`plan`), sending on time (`pool`), the comparison (`outcome`), and
reports.
"""
