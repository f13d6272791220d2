"""Simulated crowds with exact results: the plan, sending on time (`crowds`), the comparison (`outcome`), the report."""
