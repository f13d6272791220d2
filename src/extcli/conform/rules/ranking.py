"""Rankings: one answer per user, and the most frequent first."""

from __future__ import annotations

from typing import Any

from extcli.conform.deployment import Deployment
from extcli.conform.rule import ROLES, expect, rule, shown


def answer(at: Deployment, ranking: str, user: str, key: str) -> Any:
    """Submit a user's answer and return the response."""
    return at.caller("viewer", user).post("rank", {"key": key}, id=ranking).data


def answers(at: Deployment, *keys: str) -> str:
    """Submit one user's answer after the other to a new ranking, and return its id."""
    ranking = at.fresh("ranking")
    for key in keys:
        answer(at, ranking, at.fresh("user"), key)
    return ranking


def scores(at: Deployment, ranking: str) -> list[list[object]]:
    """Read a ranking as its broadcaster: keys with scores."""
    return [[row.get("key"), row.get("score")] for row in at.broadcaster.get("rank", id=ranking).data["data"]]


@rule("spec: Ranking", "broadcaster")
def ranking_without_answers(at: Deployment) -> None:
    """A ranking without answers is {"data": []}."""
    expect("the ranking", {"data": []}, at.broadcaster.get("rank", id=at.fresh("ranking")).data)


@rule("spec: Authentication", *ROLES)
def ranking_by_role(at: Deployment) -> None:
    """Broadcasters, admins and backends read rankings; a viewer is refused with 403."""
    for role, status in (("viewer", 403), ("broadcaster", 200), ("admin", 200), ("backend", 200)):
        expect(f"the status for role {role}", status, at.caller(role).get("rank", id=at.fresh("ranking")).status)


@rule("spec: Ranking", "viewer", "broadcaster", writes=True)
def second_answer(at: Deployment) -> None:
    """A user's new answer replaces the previous one, which the reply has as `original`."""
    ranking = at.fresh("ranking")
    replies = [answer(at, ranking, at.user, key) for key in ("blue", "red", "red")]
    wanted = [{"accepted": True}, *({"accepted": True, "original": key} for key in ("blue", "red"))]
    expect("the replies to blue, red, red", wanted, replies)
    expect("the ranking", [["red", 1]], scores(at, ranking))


@rule("spec: Ranking", "viewer", "broadcaster", writes=True)
def order_by_score(at: Deployment) -> None:
    """The score of a text is the number of its users; highest first."""
    expect("the ranking", [["red", 2], ["blue", 1]], scores(at, answers(at, "blue", "red", "red")))


@rule("R1", "viewer", "broadcaster", writes=True)
def order_of_ties(at: Deployment) -> None:
    """Answers with the same score are in the order of their first submission."""
    ranking = answers(at, "zebra", "ant", "mole", "ant", "zebra")
    expect("the ranking", [["zebra", 2], ["ant", 2], ["mole", 1]], scores(at, ranking))


@rule("spec: Ranking", "viewer", "broadcaster", writes=True)
def unaltered_answers(at: Deployment) -> None:
    """Answers are not altered: spaces, case and Unicode forms make different answers."""
    texts = ["red", "Red", " red", "red ", "caf\u00e9", "cafe\u0301", "", "01", "1", "i", "I", "\u0131", "\U0001f600"]
    texts += ["a\0b", '"quoted"\\', "\u2028\u200b\ufeff", "x" * 1_024]
    expect("the ranking", [[text, 1] for text in texts], scores(at, answers(at, *texts)))


@rule("R1", "viewer", "broadcaster", writes=True)
def size_of_an_answer(at: Deployment) -> None:
    """An answer has at most 1 KiB of UTF-8; a longer one is refused with 400."""
    ranking = at.fresh("ranking")
    for key, status in (("\u00e9" * 512, 200), ("\u00e9" * 512 + "x", 400)):
        sent = at.viewer.post("rank", {"key": key}, id=ranking)
        expect(f"the status of an answer of {len(key.encode())} bytes", status, sent.status)


@rule("spec: Limits", "viewer", "broadcaster", writes=True)
def top_100(at: Deployment) -> None:
    """A ranking shows its top 100 answers."""
    keys = [f"answer {number}" for number in range(101)]
    ranking = answers(at, *keys, keys[100])
    wanted = [[keys[100], 2], *([key, 1] for key in keys[:99])]
    expect("the ranking", wanted, scores(at, ranking))


@rule("spec: Ranking", "viewer", "broadcaster", writes=True)
def answer_without_a_text(at: Deployment) -> None:
    """An answer whose `key` is missing or not a string is refused with 400."""
    ranking = at.fresh("ranking")
    bodies: list[Any] = [{}, [], None, {"key": 5}, {"key": None}, {"key": ["red"]}, {"Key": "red"}]
    for body in bodies:
        expect(f"the status of {shown(body)}", 400, at.viewer.post("rank", body, id=ranking).status)
    expect("the ranking afterwards", [], scores(at, ranking))


@rule("spec: Ranking", "viewer", "broadcaster", writes=True)
def deletion_of_a_ranking(at: Deployment) -> None:
    """DELETE removes a ranking, also an absent one; a viewer is refused with 403."""
    ranking, user = at.fresh("ranking"), at.fresh("user")
    answer(at, ranking, user, "red")
    expect("the status for a viewer", 403, at.viewer.delete("rank", id=ranking).status)
    expect("the ranking afterwards", [["red", 1]], scores(at, ranking))
    for _ in range(2):
        reply = at.broadcaster.delete("rank", id=ranking)
        expect("status and body for a broadcaster", [200, {}], [reply.status, reply.json])
        expect("the ranking afterwards", [], scores(at, ranking))
    expect("the reply to a new answer of the same user", {"accepted": True}, answer(at, ranking, user, "blue"))


@rule("R1", "viewer", "broadcaster", writes=True)
def ranking_of_channels(at: Deployment) -> None:
    """All channels share a `global-` ranking, which a broadcaster may not delete; others are of one channel."""
    second = at.fresh("channel")
    for prefix, wanted in (("", 1), ("global-", 2)):
        ranking = at.fresh("ranking", prefix=prefix)
        for channel in (at.channel, second):
            at.caller("viewer", at.fresh("user"), channel=channel).post("rank", {"key": "red"}, id=ranking).check()
        expect(f"the score in {ranking}", [["red", wanted]], scores(at, ranking))
    expect("the status of DELETE", 403, at.broadcaster.delete("rank", id=ranking).status)
    expect("the ranking afterwards", [["red", 2]], scores(at, ranking))


@rule("A4", "viewer", "admin", writes=True)
def ranking_in_all_channels(at: Deployment) -> None:
    """An extension-level token reads the answers of all channels as one ranking."""
    ranking = at.fresh("ranking")
    for channel, key in ((at.channel, "red"), (at.fresh("channel"), "blue"), (at.fresh("channel"), "blue")):
        at.caller("viewer", at.fresh("user"), channel=channel).post("rank", {"key": key}, id=ranking).check()
    rows = at.caller("admin", channel=None).get("rank", id=ranking).data["data"]
    expect("the ranking", [["blue", 2], ["red", 1]], [[row["key"], row["score"]] for row in rows])
