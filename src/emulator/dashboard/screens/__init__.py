"""The screens, one module each, with the constant `SCREEN`. `pages.py` finds them."""
