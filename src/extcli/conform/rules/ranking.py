"""Rankings: one answer per user, and the most frequent first."""

from __future__ import annotations

from typing import Any

from extcli.conform.calls import Caller
from extcli.conform.deployment import Deployment
from extcli.conform.rule import expect, writes


class Ranking:
    """A new ranking, as callers use it."""

    def __init__(self, at: Deployment, *keys: str, prefix: str = "") -> None:
        """Submit one answer after the other, each of a new user."""
        self._at = at
        self.id = at.fresh("ranking", prefix=prefix)
        for key in keys:
            self.answer(at.stranger(), key)

    def answer(self, caller: Caller, key: str) -> Any:
        """Submit a user's answer and return the response."""
        return caller.post("rank", {"key": key}, id=self.id).json

    def shows(self, *wanted: tuple[str, int], by: Caller | None = None) -> None:
        """Raise `Differs` unless its broadcaster, or another caller, reads these answers with their scores."""
        rows = (by or self._at.broadcaster).get("rank", id=self.id).json["data"]
        expect("the ranking", wanted, [(row["key"], row["score"]) for row in rows])


@writes("spec: Ranking")
def second_answer(at: Deployment) -> None:
    """A user's new answer replaces the previous one, which the reply has as `original`."""
    ranking = Ranking(at)
    replies = [ranking.answer(at.viewer, key) for key in ("blue", "red", "red")]
    wanted = [{"accepted": True}, *({"accepted": True, "original": key} for key in ("blue", "red"))]
    expect("the replies to blue, red, red", wanted, replies)
    ranking.shows(("red", 1))


@writes("spec: Ranking")
def order_by_score(at: Deployment) -> None:
    """The score of an answer is the number of users who gave it; the highest comes first."""
    Ranking(at, "blue", "red", "red").shows(("red", 2), ("blue", 1))


@writes("R1")
def order_of_ties(at: Deployment) -> None:
    """Answers with the same score are in the order of their first submission."""
    Ranking(at, "zebra", "ant", "mole", "ant", "zebra").shows(("zebra", 2), ("ant", 2), ("mole", 1))


@writes("spec: Ranking")
def unaltered_answers(at: Deployment) -> None:
    """Answers are not altered: spaces, case and Unicode forms make different answers."""
    texts = ["red", "Red", " red", "red ", "caf\u00e9", "cafe\u0301", "", "01", "1", "i", "I", "\u0131", "\U0001f600"]
    texts += ["a\0b", '"quoted"\\', "\u2028\u200b\ufeff", "x" * 1_024]
    Ranking(at, *texts).shows(*((text, 1) for text in texts))


@writes("R1")
def size_of_an_answer(at: Deployment) -> None:
    """An answer has at most 1 KiB of UTF-8; a longer one is refused with 400."""
    ranking, longest = at.fresh("ranking"), "\u00e9" * 512
    at.viewer.post("rank", {"key": longest}, id=ranking)
    at.viewer.post("rank", {"key": longest + "x"}, id=ranking, status=400)


@writes("spec: Limits")
def top_100(at: Deployment) -> None:
    """A ranking shows its top 100 answers."""
    *keys, last = [f"answer {number}" for number in range(101)]
    Ranking(at, *keys, last, last).shows((last, 2), *((key, 1) for key in keys[:99]))


@writes("spec: Ranking")
def answer_without_a_text(at: Deployment) -> None:
    """An answer whose `key` is missing or not a string is refused with 400."""
    ranking = Ranking(at)
    bodies: list[Any] = [
        {},
        [],
        None,
        {"key": 5},
        {"key": None},
        {"key": ["red"]},
        {"Key": "red"},
    ]
    at.viewer.refuses("rank", *bodies, id=ranking.id)
    ranking.shows()


@writes("spec: Ranking")
def deletion_of_a_ranking(at: Deployment) -> None:
    """DELETE removes a ranking, also an absent one; a viewer is refused with 403."""
    ranking, user = Ranking(at), at.stranger()
    ranking.answer(user, "red")
    at.viewer.delete("rank", id=ranking.id, status=403)
    ranking.shows(("red", 1))
    for _ in range(2):
        at.broadcaster.delete("rank", id=ranking.id).returns({})
        ranking.shows()
    expect("the reply to a new answer of the same user", {"accepted": True}, ranking.answer(user, "blue"))


@writes("R1")
def ranking_of_channels(at: Deployment) -> None:
    """All channels share a `global-` ranking, which a broadcaster may not delete; any other belongs to one channel."""
    second = at.fresh("channel")
    for prefix, wanted in (("", 1), ("global-", 2)):
        ranking = Ranking(at, "red", prefix=prefix)
        ranking.answer(at.stranger(channel=second), "red")
        ranking.shows(("red", wanted))
    at.broadcaster.delete("rank", id=ranking.id, status=403)
    ranking.shows(("red", 2))


@writes("A4")
def ranking_in_all_channels(at: Deployment) -> None:
    """A token without a channel reads the answers of all channels as one ranking."""
    ranking = Ranking(at, "red")
    for _ in range(2):
        ranking.answer(at.stranger(channel=at.fresh("channel")), "blue")
    ranking.shows(("blue", 2), ("red", 1), by=at.caller("admin", channel=None))
