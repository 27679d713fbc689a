"""Where an answer sends its reader."""

from __future__ import annotations

import httpx

from nightdesk.errors import Permanent
from nightdesk.research.addresses import AddressGuard
from nightdesk.research.web import Answer

_REDIRECTS = frozenset({301, 302, 303, 307, 308})


def redirect_of(answer: Answer, guard: AddressGuard) -> httpx.URL | None:
    """The target of a redirect, its form checked; None if the answer is not a redirect.

    Raises:
        Permanent: if the target is malformed or not allowed.
    """
    location = answer.headers.get("location", "")
    if answer.status not in _REDIRECTS or not location:
        return None
    try:
        target = answer.url.join(location)
    except (httpx.InvalidURL, ValueError) as error:
        raise Permanent(f"{answer.url} redirects to something malformed: {error}") from error
    return guard.check(str(target))
