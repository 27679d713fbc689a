"""One address from the first request to the body, over all its redirects."""

from __future__ import annotations

import email.utils
from dataclasses import dataclass
from http import HTTPStatus
from typing import Literal

from nightdesk.errors import JobError, Permanent
from nightdesk.research.addresses import AddressGuard
from nightdesk.research.policy import FetchPolicy
from nightdesk.research.redirects import redirect_of
from nightdesk.research.robots import Robots
from nightdesk.research.web import Answer, Budget, Web

RobotsVerdict = Literal["allowed", "disallowed", "unknown"]

#: What text can be extracted from.
MEDIA_TYPES = frozenset(
    {
        "text/html",
        "application/xhtml+xml",
        "application/xml",
        "text/xml",
        "application/rss+xml",
        "application/atom+xml",
        "application/rdf+xml",
        "text/plain",
    }
)


@dataclass(slots=True)
class Visit:
    """What is known of an address so far; either `answer` or `error` is set in the end."""

    final_url: str | None = None  #: the last address that answered
    status: int | None = None
    media_type: str | None = None
    robots: RobotsVerdict = "unknown"  #: of the last address that was tried
    answer: Answer | None = None  #: a 200 of a readable type, whole
    error: str | None = None


class Fetcher:
    """Follows redirects hop by hop: each is checked like the first address, robots.txt included."""

    def __init__(self, policy: FetchPolicy, guard: AddressGuard, web: Web) -> None:
        self._policy = policy
        self._guard = guard
        self._web = web
        self._robots = Robots(policy, guard, web)

    async def visit(self, address: str) -> Visit:
        """Fetch an address; a failure is told in `error`, in one sentence."""
        visit = Visit()
        try:
            await self._follow(address, visit)
        except JobError as error:
            visit.error = str(error)
        return visit

    async def _follow(self, address: str, visit: Visit) -> None:
        url = self._guard.check(address)
        budget, seen = Budget(self._policy.total_timeout_s), set[str]()
        for _ in range(self._policy.max_redirects + 1):
            if str(url) in seen:
                raise Permanent(f"{address} redirects in a circle, back to {url}")
            seen.add(str(url))
            visit.robots = "unknown"
            refusal = await self._robots.refusal(url)
            visit.robots = "disallowed" if refusal else "allowed"
            if refusal:
                raise Permanent(refusal)
            answer = await self._web.get(url, budget, self._policy.max_bytes, self._is_wanted)
            visit.final_url, visit.status = str(url), answer.status
            visit.media_type = answer.media_type[:100] or None
            following = redirect_of(answer, self._guard)
            if following is None:
                self._require_page(answer)
                visit.answer = answer
                return
            url = following
        raise Permanent(f"{address} redirects more than {self._policy.max_redirects} times")

    def _is_wanted(self, answer: Answer) -> bool:
        return (
            answer.status == HTTPStatus.OK
            and answer.media_type in MEDIA_TYPES
            and _declared_bytes(answer) <= self._policy.max_bytes
        )

    def _require_page(self, answer: Answer) -> None:
        if answer.status != HTTPStatus.OK:
            raise Permanent(f"{answer.url} answered {_named(answer.status)}{_when_again(answer)}")
        if answer.media_type not in MEDIA_TYPES:
            kind = answer.media_type[:100] or "no content type"
            raise Permanent(f"{answer.url} is {kind}: only HTML, feeds and plain text are read")
        if not answer.complete or _declared_bytes(answer) > self._policy.max_bytes:
            raise Permanent(f"{answer.url} is larger than {self._policy.max_bytes} bytes")


def _declared_bytes(answer: Answer) -> int:
    # With several digits of nonsense it is no number; the cap on the stream holds anyway.
    declared = answer.headers.get("content-length", "")
    return int(declared) if declared.isdecimal() and len(declared) < 16 else 0


def _named(status: int) -> str:
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)


def _when_again(answer: Answer) -> str:
    """What a `Retry-After` asks for (RFC 9110, 10.2.3: seconds or a date)."""
    asked = answer.headers.get("retry-after", "").strip()
    if asked.isdecimal() and asked.isascii():
        return f" and asks to wait {asked[:9]} s (Retry-After)"
    try:
        moment = email.utils.parsedate_to_datetime(asked)
    except ValueError:
        return ""
    return f" and asks to come back after {moment.isoformat()} (Retry-After)"
