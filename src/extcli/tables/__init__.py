"""Files of tables in TOML or JSON, such as seeds: the kinds of their fields, and errors by line and column."""
