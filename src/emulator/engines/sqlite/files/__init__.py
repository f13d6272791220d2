"""Operations on a database file as a whole: copy, check, describe, replace, and raise to a newer format."""
