"""Commands for the settings of this program."""
