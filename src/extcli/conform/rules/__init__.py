"""The rules, one file per subject. `run.py` finds the files.

A rule is a function `name(at: Deployment)` under `@reads(source)` or `@writes(source)`, and named `source.name`. Its
docstring is the sentence that reports print. It calls the service as `at.viewer`, `at.broadcaster`, `at.admin`,
`at.backend` or `at.caller(role, user, …)`, in a channel of its own, and makes ids with `at.fresh("poll")`.

A call must succeed, unless it names its `status`: `at.viewer.get("vote", id=".", status=400)`. Bodies are checked with
`reply.returns(body)` and `reply.has(member=value)`, a socket with `game.refuses(404, action, target)`, and other facts
with `expect(what, expected, seen)`, `expect_status(what, expected, seen)` or `expect_members(wanted, found)`.

A rule that does more than read is under `@writes`, with `"extension"` if it changes codes, config or state of the whole
extension; `Deployment.close` removes what it wrote. A rule that needs no token has `"anonymous"`.
"""
