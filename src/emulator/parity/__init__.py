"""What production would have done differently with a request to the sandbox."""
