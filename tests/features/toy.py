"""A feature that exists in tests only: short notes of a channel."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from emulator.core.callers import CHANNEL_WRITERS, Caller, required_channel
from emulator.core.changes import Change
from emulator.core.keys import Key
from emulator.core.wire import json_codec
from emulator.feature_list import Feature
from emulator.features.kinds import Kind, Measured, Subject
from emulator.http.endpoint import CHANNEL, Call, Nothing, endpoint, id_of
from emulator.realtime.action import Message, action
from emulator.storage.kinds import Stored, decode_check
from emulator.storage.records import DocumentRecord

LIFETIME: Final = 86_400_000


class Note(Struct):
    """The text of a note."""

    text: str


class Notes:
    """The notes of all channels."""

    def __init__(self, service: Any) -> None:
        self._documents = service.engine.documents
        self._clock = service.clock
        self._changes = service.changes

    async def write(self, caller: Caller, channel: str | None, id: str, note: Note) -> None:
        key, text, now = _key(caller, channel, id), json_codec.encode(note), self._clock.now()
        await self._documents.update([key], lambda found: {key: text}, now=now, expires_at=now + LIFETIME)
        await self._changes.committed(Change(key, "written", caller.opaque_id, at=now))

    async def measure(self, caller: Caller, channel: str | None, id: str, user: str) -> Measured:
        key = _key(caller, channel, id)
        found: Mapping[Key, bytes] = await self._documents.read([key], now=self._clock.now())
        return Measured(content=found.get(key))

    async def read(self, caller: Caller, channel: str | None, id: str) -> Note:
        text = (await self.measure(caller, channel, id, "")).content
        return json_codec.decode(text, Note) if text else Note("")


def _key(caller: Caller, channel: str | None, id: str) -> Key:
    return Key("note", caller.client_id, id, required_channel(channel, "a note"))


@endpoint("POST", "/v1/e/note", roles=CHANNEL_WRITERS, body=Note, query=(CHANNEL, id_of("note")))
async def write_note(notes: Notes, call: Call) -> Nothing:
    """Write a note."""
    await notes.write(call.caller, call.channel, call.id, call.body(Note))
    return Nothing()


@endpoint("GET", "/v1/e/note", roles=CHANNEL_WRITERS, answer=Note, query=(CHANNEL, id_of("note")))
async def read_note(notes: Notes, call: Call) -> Note:
    """Read a note."""
    return await notes.read(call.caller, call.channel, call.id)


@action("get", "note", roles=CHANNEL_WRITERS)
async def get_note(notes: Notes, message: Message) -> Note:
    return await notes.read(message.caller, message.channel, "default")


NOTES: Final = Kind(
    "notes",
    "the notes, with their sizes",
    ("note",),
    LIFETIME,
    records=(Stored(DocumentRecord, "note", decode_check(Note)),),
    screen="stores",
    waits_for=Subject("note", "note", frozenset({"path", "equals"}), "default"),
)
NOTE_FEATURE: Final = Feature(Notes, (write_note, read_note), (get_note,), kinds=(NOTES,))
