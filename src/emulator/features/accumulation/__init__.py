"""Accumulation: small JSON blobs, collected in order of arrival (rulings R2, R3)."""
