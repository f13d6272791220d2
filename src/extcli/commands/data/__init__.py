"""Commands for the data of an extension."""
