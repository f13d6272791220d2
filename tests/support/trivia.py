"""Creates trivia questions, and votes on them."""

from __future__ import annotations

from typing import Any

import httpx

from support.service import Client


def create_question(
    admin: Client, question: str = "q1", *options: str, state: str = "state-unlocked", **texts: Any
) -> None:
    """Create a question with these options, by default `o1` and `o2`."""
    admin.post("curated_poll_edit", json={"id": question, **texts}).raise_for_status()
    for option in options or ("o1", "o2"):
        body = {"id": question, "option": {"id": option}}
        admin.post("curated_poll_edit_option", json=body).raise_for_status()
    set_state(admin, state, question).raise_for_status()


def set_state(admin: Client, state: str, question: str = "q1", winner: str = "o1") -> httpx.Response:
    body = {"transition": state} | ({"winner": winner} if state == "state-results" else {})
    return admin.post(f"curated_poll_state?id={question}", json=body)


def vote(client: Client, option: str = "o1", question: str = "q1") -> int:
    return client.post("curated_poll", json={"question_id": question, "vote": option}).status_code


def results(client: Client, question: str = "q1") -> dict[str, str]:
    return dict(client.get(f"curated_poll?id={question}").raise_for_status().json()["results"])


def ids(client: Client) -> list[str]:
    return [each["id"] for each in client.get("curated_poll").raise_for_status().json()["questions"]]


def team(client: Client) -> str:
    return str(client.get("team_membership").raise_for_status().json()["id"])
