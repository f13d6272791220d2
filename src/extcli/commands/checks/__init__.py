"""Commands that wait, compare and diagnose."""
