"""What a request asks for and what an answer says, in no provider's dialect."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

from nightdesk.sandbox.tariff import Tokens

BYTES_PER_TOKEN = 4
Json = dict[str, Any]


def token_count(text: str) -> int:
    """A deterministic estimate: one token per four bytes of UTF-8, rounded up."""
    return -(-len(text.encode("utf-8", "surrogatepass")) // BYTES_PER_TOKEN)


def digest(*parts: object) -> int:
    """A number that depends on nothing but `parts`; the source of everything random here."""
    canonical = json.dumps(parts, sort_keys=True, default=str).encode("ascii")
    return int.from_bytes(hashlib.sha256(canonical).digest()[:8])


def fraction(*parts: object) -> float:
    """A number in [0, 1) that depends on nothing but `parts`."""
    return digest(*parts) / 2**64


@dataclass(frozen=True, slots=True)
class Segment:
    """A piece of the prompt; the cache may be written or read at its end."""

    text: str
    cache_ttl_s: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """A valid request to a known model."""

    provider: str
    model: str
    account: str  #: the API key: caches are not shared between accounts
    segments: tuple[Segment, ...]  #: in the order in which the cache sees them
    user_text: str  #: what the writer reads
    schema: Json | None  #: None asks for plain text
    schema_title: str
    max_tokens: int | None
    cache_key: str = ""
    body: Json = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The whole prompt."""
        return "\n".join(segment.text for segment in self.segments)

    @property
    def schema_tokens(self) -> int:
        return token_count(json.dumps(self.schema)) if self.schema else 0

    @property
    def prompt_tokens(self) -> int:
        return sum(token_count(segment.text) for segment in self.segments) + self.schema_tokens


class Ending(StrEnum):
    """Why an answer stops."""

    COMPLETE = "complete"
    MAX_TOKENS = "max_tokens"
    REFUSAL = "refusal"
    REFUSAL_EMPTY = "refusal_empty"
    CONTENT_FILTER = "content_filter"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Answer:
    """What the model said, and what it cost in tokens."""

    text: str
    ending: Ending
    tokens: Tokens
    error_code: str = ""  #: with `Ending.FAILED` only


class Refused(Exception):
    """The provider refuses a request with an HTTP error; `error` overrides the usual body."""

    def __init__(self, status: int, error: Json) -> None:
        self.status = status
        self.error = error
        super().__init__(f"{status} {error.get('message', '')}")


class Dialect(Protocol):
    """How one provider reads requests and writes answers."""

    name: str

    def account(self, headers: dict[str, str]) -> str:
        """The API key of a request.

        Raises:
            Refused: 401 if there is none or it is `wrong`.
        """
        ...

    def read(self, body: Json, account: str) -> Ask:
        """The ask of a request body.

        Raises:
            Refused: 400 or 404, as the provider would.
        """
        ...

    def write(self, ask: Ask, answer: Answer, serial: int) -> Json:
        """The response body; `serial` makes its ids unique."""
        ...

    def error(self, status: int, overrides: Json, request_id: str) -> Json:
        """The body of an HTTP error."""
        ...

    def headers(self, request_id: str) -> dict[str, str]:
        """Request id and rate limits."""
        ...


def field_of(body: Json, name: str, kind: type | tuple[type, ...]) -> Any:
    """A required field of a request body.

    Raises:
        Refused: 400 if it is missing or of another type.
    """
    value = body.get(name)
    if name not in body:
        raise Refused(400, {"message": f"{name}: Field required", "param": name})
    if not isinstance(value, kind) or isinstance(value, bool):
        raise Refused(400, {"message": f"{name}: Input has the wrong type", "param": name})
    return value
