"""The rules, one file per subject. `run.py` finds the files.

A rule is a function `name(at: Deployment)` under `@rule(source, sentence, *roles, writes=…)`, and named `source.name`.
It calls the service as `at.viewer`, `at.broadcaster`, `at.admin`, `at.backend` or `at.caller(role, user, …)`, in a
channel of its own, and makes ids with `at.fresh("poll")`. It compares with `expect(what, expected, seen)`. A rule that
does more than read is marked `writes`, and `extension` if it changes codes, config or state of the whole extension;
`leftovers.py` removes what it wrote.
"""
