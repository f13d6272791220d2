"""Seeds: the data with which a test begins, applied in one step."""
