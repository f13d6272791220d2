"""Records which code of the service runs, to find the rules of `extcli conform` that a planted fault cannot change."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from types import CodeType, FrameType

import emulator
from emulator.http.dispatch import Dispatcher

_SERVICE = str(Path(emulator.__file__).parent)
_ANSWER = Dispatcher.answer.__code__


class Executed:
    """What ran in one step."""

    def __init__(self) -> None:
        self.functions: set[CodeType] = set()
        """With the handlers of all endpoints that were called, even if the call was refused."""

    @cached_property
    def words(self) -> set[str]:
        """Every name and text in these functions. A value that they use has its name here."""
        constants = (each for code in self.functions for each in code.co_consts if isinstance(each, str))
        return {name for code in self.functions for name in code.co_names}.union(constants)


class Recorder:
    """Records the code of services that start while it is active, apart for each step."""

    def __init__(self) -> None:
        self.current = Executed()

    def begin(self) -> Executed:
        """Begin a step, and return what will run in it."""
        self.current = Executed()
        return self.current

    @contextmanager
    def active(self) -> Iterator[None]:
        threading.setprofile(self._note)
        try:
            yield
        finally:
            threading.setprofile(None)  # type: ignore[arg-type]

    def _note(self, frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(_SERVICE):
            self.current.functions.add(code)
            if code is _ANSWER:
                self.current.functions.add(frame.f_locals["bound"].endpoint.handler.__code__)
