"""The screens. Each module has the constant `SCREENS`; `pages.py` finds them."""
