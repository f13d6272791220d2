"""Purchases that viewers make, as receipts from pages and as news for games."""
