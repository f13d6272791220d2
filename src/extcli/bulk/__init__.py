"""Sends many lines of input: reads, orders, retries, reports and resumes."""
