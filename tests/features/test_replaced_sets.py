"""A code set that replaces another shows its own numbers: codes, handed out and left (ruling C2)."""

from __future__ import annotations

from support.service import Client

GRANT = {"prize_limits": [5, 5], "prizes": [0, 0, 0, 0, 1], "users": ["1", "2"]}


def put(backend: Client, *sets: list[str], names: tuple[str, ...] = ("hats", "coins")) -> None:
    body = {"codes": list(sets), "names": list(names[: len(sets)])}
    backend.put("codes", json=body).raise_for_status()


def numbers(backend: Client, stranger: Client) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Return the codes handed out and left of each set: of the list, and of the contents."""
    listed = backend.get("codes").json()
    contents = stranger.get("/_emulator/contents/codes").json()["rows"]
    return (
        list(zip(listed["distributed"], listed["left"], strict=True)),
        [(each["count"], each["left"]) for each in contents],
    )


def redeem(viewer, times: int, prize: int = 0) -> None:
    for _ in range(times):
        viewer("1").post("codes/redeem", json={"prize": prize}).raise_for_status()


def test_the_numbers_of_a_replaced_set_survive_a_snapshot(backend: Client, stranger: Client, viewer):
    put(backend, ["a", "b"], ["x"])
    backend.post("codes/mark_from_list", json=GRANT).raise_for_status()
    redeem(viewer, 2)
    put(backend, ["c", "d", "e"])
    redeem(viewer, 1)
    snapshot = stranger.get("/_emulator/snapshot").content

    stranger.post("/_emulator/reset").raise_for_status()
    stranger.put("/_emulator/snapshot", content=snapshot).raise_for_status()

    assert ([(1, 2), (0, 1)],) * 2 == numbers(backend, stranger)
