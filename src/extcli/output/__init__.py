"""Printing: formats, tables and safe text. Knows no service."""
