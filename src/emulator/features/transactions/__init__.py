"""Purchases: pages post receipts, games follow and settle them."""
