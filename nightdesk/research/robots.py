"""robots.txt after RFC 9309: asked before every fetch, kept for at most a day."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import httpx
from protego import Protego

from nightdesk.errors import JobError, Permanent
from nightdesk.research.addresses import AddressGuard, host_of, port_of
from nightdesk.research.policy import FetchPolicy
from nightdesk.research.redirects import redirect_of
from nightdesk.research.web import Answer, Budget, Web

_MAX_BYTES = 500 * 1024  # RFC 9309, 2.5: at least this much must be parsed
_MAX_REDIRECTS = 5  # RFC 9309, 2.3.1.2
_KEEP_S = 24 * 3600.0  # RFC 9309, 2.4
_KEEP_UNREACHABLE_S = 300.0  # a server that was down for a minute is not shunned for a day


@dataclass(frozen=True, slots=True)
class _Rules:
    parsed: Protego | None  # None: everything is allowed
    problem: str | None  # why nothing is allowed
    expires_at: float  # on the event loop's clock


class Robots:
    """The robots.txt files of the hosts that were asked."""

    def __init__(self, policy: FetchPolicy, guard: AddressGuard, web: Web) -> None:
        self._policy = policy
        self._guard = guard
        self._web = web
        self._kept: dict[tuple[str, str, int], _Rules] = {}
        self._asking: dict[tuple[str, str, int], asyncio.Lock] = {}

    async def refusal(self, url: httpx.URL) -> str | None:
        """Why robots.txt forbids a URL, in one sentence; None if it may be fetched.

        Raises:
            Permanent: if the guard refuses the host itself, so that nothing can be asked.
        """
        rules = await self._rules(url)
        if rules.problem is not None:
            return rules.problem
        token = self._policy.product_token
        if rules.parsed is None or rules.parsed.can_fetch(str(url), token):
            return None
        return f"robots.txt of {host_of(url)} does not allow {token} to fetch {url}"

    async def _rules(self, url: httpx.URL) -> _Rules:
        origin = (url.scheme, host_of(url), port_of(url))
        loop = asyncio.get_running_loop()
        async with self._asking.setdefault(origin, asyncio.Lock()):
            rules = self._kept.get(origin)
            if rules is None or loop.time() >= rules.expires_at:
                parsed, problem = await self._ask(url)
                keep_s = _KEEP_S if problem is None else _KEEP_UNREACHABLE_S
                rules = self._kept[origin] = _Rules(parsed, problem, loop.time() + keep_s)
            return rules

    async def _ask(self, url: httpx.URL) -> tuple[Protego | None, str | None]:
        host, target = host_of(url), url.copy_with(raw_path=b"/robots.txt")
        budget, answered = Budget(self._policy.total_timeout_s), False
        try:
            for _ in range(_MAX_REDIRECTS + 1):
                answer = await self._web.get(target, budget, _MAX_BYTES)
                answered = True
                following = redirect_of(answer, self._guard)
                if following is None:
                    return _read(host, answer)
                target = following
        except JobError as error:
            if isinstance(error, Permanent) and not answered:
                raise  # the page itself would be refused in the same way
            return None, _unreachable(host, str(error))
        return None, None  # RFC 9309, 2.3.1.2: after five redirects it counts as missing


def _read(host: str, answer: Answer) -> tuple[Protego | None, str | None]:
    if 400 <= answer.status < 500:  # RFC 9309, 2.3.1.3: "unavailable" means no restrictions
        return None, None
    if answer.status != httpx.codes.OK:
        return None, _unreachable(host, f"the server answered {answer.status}")
    body = answer.body if answer.complete else answer.body.rpartition(b"\n")[0]
    return Protego.parse(body.decode("utf-8-sig", errors="replace")), None


def _unreachable(host: str, why: str) -> str:
    # RFC 9309, 2.3.1.4: "unreachable" means complete disallow.
    return f"robots.txt of {host} cannot be read, so nothing may be fetched there for now: {why}"
