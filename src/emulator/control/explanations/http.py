"""`GET /_emulator/explain`: why a request was refused, and the text of a rule."""

from __future__ import annotations

from typing import Final

from emulator.control.explanations.service import Explained, Explanations
from emulator.http.endpoint import Audience, Call, Parameter, endpoint

_PARAMETERS = (
    Parameter("id", "A request id or number, or the reason of a closed socket. The latest refusal if both are absent."),
    Parameter(
        "rule", "A ruling such as `A1`, a section such as `spec: Limits`, or a rule of production such as `exp`."
    ),
)


@endpoint(
    "GET",
    "/_emulator/explain",
    audience=Audience.CONTROL,
    query=_PARAMETERS,
    answer=Explained,
    is_recorded=False,
)
async def explain(explanations: Explanations, call: Call) -> Explained:
    """Explain a request: why it was refused, and production's verdict. Or read a rule."""
    if name := call.text("rule"):
        return explanations.explain_rule(name)
    if id := call.text("id"):
        return explanations.explain_request(id)
    return explanations.explain_latest()


endpoints: Final = (explain,)
