"""Operations on a database file as a whole: lock, back up, verify, describe and replace."""
