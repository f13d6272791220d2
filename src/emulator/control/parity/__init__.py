"""What production would have done differently, as counted so far."""
