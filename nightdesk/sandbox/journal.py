"""The journal: what was asked, answered and billed, on disk before the answer leaves.

One JSON object per line. A line without its line feed was cut by a crash: its answer was never
sent, so a reader leaves it out and a new server removes it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from nightdesk.errors import InputError, InputProblem


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalEntry:
    """One request to a provider."""

    seq: int  #: counts from 1 over the life of the file
    at: str  #: wall time, ISO 8601 in UTC; evidence only
    provider: str  #: `anthropic` or `openai`
    model: str | None
    path: str
    client_request_id: str | None  #: header `X-Client-Request-Id`
    request_id: str
    status: int | None  #: None if no status line was sent (`reset`, `stall`)
    fault: str | None  #: name of the rule of the fault plan that struck
    phase: str | None  #: title of the schema that was asked for
    usage: dict[str, Any] | None  #: in the provider's own shape, whether or not it was sent
    billed_usd: Decimal  #: a string in the file
    request: Any  #: body as received
    response: Any  #: body as written, even if it was lost on the way


class JournalWriter:
    """Appends entries; each is on disk when `append` returns."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self._file = path.open("ab+")
        self._remove_torn_line()
        self.entries = len(read_journal(path))

    def append(self, entry: JournalEntry) -> None:
        """Write, flush and fsync one entry."""
        fields = asdict(entry) | {"billed_usd": str(entry.billed_usd)}
        # ASCII escapes keep lone surrogates, which UTF-8 has no bytes for.
        self._file.write(json.dumps(fields).encode("ascii") + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())
        self.entries += 1

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _remove_torn_line(self) -> None:
        self._file.seek(0)
        content = self._file.read()
        if content and not content.endswith(b"\n"):
            self._file.truncate(content.rfind(b"\n") + 1)


def read_journal(path: Path) -> list[JournalEntry]:
    """All whole entries of a journal in order; none if there is no file yet.

    Raises:
        InputError: if a line that ends with a line feed is no journal entry.
    """
    if not path.exists():
        return []
    whole_lines = path.read_bytes().split(b"\n")[:-1]
    return [_parse(path, number, line) for number, line in enumerate(whole_lines, start=1)]


def billed_usd(entries: Iterable[JournalEntry]) -> Decimal:
    """What the providers would charge for these requests, in USD."""
    return sum((entry.billed_usd for entry in entries), Decimal(0))


def _parse(path: Path, number: int, line: bytes) -> JournalEntry:
    try:
        fields = json.loads(line)
        return JournalEntry(**fields | {"billed_usd": Decimal(fields["billed_usd"])})
    except (ValueError, TypeError, KeyError, ArithmeticError) as error:
        problem = InputProblem(f"not a journal entry ({error}); restore the file or remove it", line=number)
        raise InputError(str(path), [problem]) from error
