"""Keeps the lines of the audit log."""

from __future__ import annotations

import logging


class AuditLines(logging.Handler):
    """Keeps the records of the audit log."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)

    @property
    def texts(self) -> list[str]:
        return [record.getMessage() for record in self.records]
