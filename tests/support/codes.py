"""Defines reward codes, grants them, and redeems them."""

from __future__ import annotations

from typing import Any

from support.service import Client


def define(backend: Client, *codes: list[str], names: list[str] | None = None, **more: Any) -> None:
    """Define sets, named A, B, … by default."""
    body = {"codes": list(codes), "names": names or list("ABCDEFGHIJ"[: len(codes)]), **more}
    answer = backend.put("codes", json=body)
    assert (200, {}) == (answer.status_code, answer.json())


def grant(backend: Client, *users: str, prizes: list[int], limits: list[int] | None = None) -> None:
    """Make users eligible."""
    body = {"prizes": prizes, "prize_limits": limits if limits is not None else [9] * 10, "users": list(users)}
    answer = backend.post("codes/mark_from_list", json=body)
    assert (200, {}) == (answer.status_code, answer.json())


def redeem(viewer: Client, prize: int = 0) -> dict[str, Any]:
    return dict(viewer.post("codes/redeem", json={"prize": prize}).raise_for_status().json())


def eligible(viewer: Client) -> list[int]:
    return list(viewer.get("codes/eligibility").raise_for_status().json()["eligible"])


def redeemed(viewer: Client) -> list[list[str]]:
    return list(viewer.get("codes/redeemed").raise_for_status().json()["redeemed"])
