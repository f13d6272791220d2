"""Why a request was refused: the rule, what the caller had, what was needed, and the next step."""
