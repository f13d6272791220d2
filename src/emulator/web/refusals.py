"""What HTTP refuses."""

from __future__ import annotations

from emulator.errors import ServiceError
from emulator.refusals import Facts, refusal


class TooManyUploads(ServiceError, status=503, title="Service Unavailable"):
    """The process takes no more uploads now. The refused one has changed nothing."""

    retry_after = 5


@refusal(
    TooManyUploads,
    "Too many uploads",
    rule="gaps: Limits",
    title="The service takes no more uploads now",
    next_step="Send it again when one has ended, or raise --max-uploads of `extcli serve`.",
)
def too_many_uploads(*, limit: int) -> Facts:
    detail = f"{limit} uploads run already, the limit of --max-uploads; nothing was changed, so send it again later"
    return Facts(detail, f"{limit} uploads at once", f"fewer than {limit}")
