"""Files of reward codes: reading, validating and uploading them."""
