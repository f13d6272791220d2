"""The rules, one file per subject. `run.py` finds the files.

A rule is a function `name(at: Deployment)` under `@rule(source, *roles, writes=…)`, and named `source.name`. Its
docstring is the sentence that reports print. It calls the service as `at.viewer`, `at.broadcaster`, `at.admin`,
`at.backend` or `at.caller(role, user, …)`, in a channel of its own, and makes ids with `at.fresh("poll")`. It compares
with `expect(what, expected, seen)`. A rule that does more than read is marked `writes`, and `extension` if it changes
codes, config or state of the whole extension; `Leftovers` removes what it wrote.
"""
