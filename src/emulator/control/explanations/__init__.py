"""Why a request was refused: the rule, the caller's value, the required value, and the next step."""
