"""Everything in a namespace as records: reading and writing it."""
