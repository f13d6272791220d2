"""Texts from elsewhere: files of the user and answers of a service, bounded before they are parsed."""
