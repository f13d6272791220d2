"""Makes the files in `tests/data`: one of each format, with rows in every table, written by a service.

`PYTHONPATH=src:tests python -m engines.aged_files` writes those that are missing.
"""

from __future__ import annotations

import asyncio
import gzip
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Final

import jwt

from emulator.config.settings import Settings
from emulator.engines.engine import Engine
from emulator.engines.opening import open_engine
from emulator.engines.pools import Stock
from emulator.engines.records import digest_of
from emulator.engines.shapes import NEVER, CastRequest, Key
from emulator.engines.sqlite.schema import VERSION, statements_of
from support import trivia
from support.filled_service import PLAIN, filled_service
from support.service import CHANNEL, SECRET

FOLDER: Final = Path(__file__).parent.parent / "data"
_FAR: Final = 253_402_300_799_000
"""An expiry that is years away: the files must be usable for a long time."""


def file_of(version: int) -> Path:
    """Return the compressed file of a format."""
    return FOLDER / f"format-{version}.db.gz"


def unpack(version: int, target: Path) -> Path:
    """Write the file of a format to `target`."""
    target.write_bytes(gzip.decompress(file_of(version).read_bytes()))
    target.chmod(0o600)
    return target


def make_filled(path: Path) -> None:
    """Make a file of the current format that a service has filled by every feature, with rows in every table."""
    with filled_service(*PLAIN, settings=Settings(data=f"sqlite://{path}")) as live:
        admin = live.client("admin", user="9001", channel=CHANNEL)
        trivia.create_question(admin)
        for user in ("5551", "5552", "5553"):
            viewer = live.client("viewer", user=user, channel=CHANNEL)
            assert trivia.vote(viewer) < 300
            product = {"sku": "hat", "displayName": "A hat", "cost": {"amount": 50, "type": "bits"}}
            data = {"transactionId": f"t{user}", "userId": user, "product": product}
            receipt = jwt.encode({"topic": "bits_transaction_receipt", "data": data}, SECRET)
            body = {"transactionReceipt": receipt, "displayName": "Ann"}
            viewer.post("bits/transactions", json=body).raise_for_status()
        config = {"userData": {"totalVotesAllowed": 9, "votesPerOption": 5, "distinctOptions": 3}}
        admin.post("vote_config?id=many", json={"config": config})
        for value in (1, 1, 2):
            live.client("viewer", user="5551", channel=CHANNEL).post("vote?id=many", json={"value": value, "count": 1})
    asyncio.run(_add_what_is_left_for_later(path))
    with closing(sqlite3.connect(path, isolation_level=None)) as file:
        for table in ("documents", "ballots", "items", "pools", "lists", "rosters"):
            file.execute(f"UPDATE {table} SET expires_at = {_FAR} WHERE expires_at < {NEVER}")
        (number,) = file.execute("SELECT next FROM numbers").fetchone()
        file.execute("INSERT INTO dead_families VALUES (?)", (number,))
        file.execute("INSERT INTO spent VALUES (?, ?)", (number, digest_of("old")))
        file.execute("UPDATE numbers SET next = next + 1")
        file.execute("VACUUM")


async def _add_what_is_left_for_later(path: Path) -> None:
    """Leave rows that housekeeping has yet to delete or report, several casts of one voter, and messages."""
    key = Key("json_store", "other", "gone", "1001")
    async with open_engine(f"sqlite://{path}", namespace="sandbox") as engine:
        for voter, choice in (("V1", "a"), ("V2", "a"), ("V2", "b")):
            await engine.ballots.cast(key, CastRequest(voter, choice), now=1, expires_at=NEVER)
        await engine.ballots.drop(key, now=1)
        await _write(engine, key, now=1, expires_at=5)
        await _write(engine, key, now=9, expires_at=NEVER)
        await engine.pools.fill(key, ["x", "y", "z"], now=1, expires_at=NEVER)
        await engine.pools.assign([key], lambda _: {key: Stock(key, b"")}, now=1, expires_at=NEVER)
        assert (await engine.pools.draw(key, "V1", limit=lambda _: 2, now=1)).item == "x"
        await engine.pools.drop([key], now=1)
        empty = key._replace(name="empty")
        await engine.pools.fill(empty, ["u"], now=1, expires_at=NEVER)
        await engine.pools.assign([empty], lambda _: {empty: Stock(empty, b"")}, now=1, expires_at=NEVER)
        await engine.pools.drop([empty], now=1)
        await engine.rosters.add_members(key, ["V1", "V2"], now=1, expires_at=NEVER)
        await engine.rosters.drop([key], now=1)
        for number in range(3):
            await engine.relay.publish(key, b"%d" % number)
    async with open_engine(f"sqlite://{path}", namespace="sandbox/left") as engine:
        await engine.ballots.cast(key, CastRequest("V1", "a"), now=1, expires_at=NEVER)
        await engine.reset()


async def _write(engine: Engine, key: Key, *, now: int, expires_at: int) -> None:
    await engine.documents.update([key], lambda _: {key: b"{}"}, now=now, expires_at=expires_at)


def make_aged(filled: Path, version: int, target: Path) -> None:
    """Copy the data of a filled file to a new one that has the schema of a format."""
    with closing(sqlite3.connect(target, isolation_level=None)) as file:
        file.create_function("digest_of", 1, digest_of)
        file.execute("PRAGMA page_size = 1024")
        file.execute("PRAGMA journal_mode = WAL")
        file.execute("ATTACH ? AS source", (str(filled),))
        file.execute("BEGIN")
        for statement in statements_of(version):
            file.execute(statement)
        for (table,) in file.execute("SELECT name FROM main.sqlite_schema WHERE type = 'table'").fetchall():
            columns = {
                schema: [name for (name,) in file.execute("SELECT name FROM pragma_table_info(?, ?)", (table, schema))]
                for schema in ("main", "source")
            }
            common = ", ".join(name for name in columns["main"] if name in columns["source"])
            file.execute(f"DELETE FROM main.{table}")
            added = ", sum" if "sum" in columns["main"] else ""
            values = ", length(item)" if added else ""
            file.execute(f"INSERT INTO main.{table} ({common}{added}) SELECT {common}{values} FROM source.{table}")
        file.execute(f"PRAGMA main.user_version = {version}")
        file.execute("COMMIT")
        file.execute("DETACH source")


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        filled = Path(folder) / "filled.db"
        make_filled(filled)
        for version in range(1, VERSION + 1):
            if not file_of(version).exists():
                made = Path(folder) / f"{version}.db"
                make_aged(filled, version, made)
                file_of(version).write_bytes(gzip.compress(made.read_bytes(), mtime=0))


if __name__ == "__main__":
    main()
