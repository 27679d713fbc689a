from __future__ import annotations

import time
from collections.abc import Iterator
from uuid import UUID

import httpx
import pytest

from nightdesk.publishing.verification import verify_live
from tests.contract.faulty import FAULTS, GOOD, FaultyServer, faulty_server, page

MARKER = UUID("aaaaaaaa-2222-4333-8444-555555555555")


@pytest.fixture(scope="module")
def faulty() -> Iterator[FaultyServer]:
    with faulty_server(MARKER) as server:
        yield server


@pytest.mark.parametrize("name", GOOD)
async def test_a_page_that_shows_the_article_is_live(faulty: FaultyServer, name: str) -> None:
    verification = await verify_live(faulty.url(name), MARKER)
    assert verification.problem is None
    assert (verification.ok, verification.status) == (True, 200)


@pytest.mark.parametrize("name", [name for name in FAULTS if name not in {"slow", "drip"}])
async def test_every_problem_is_one_sentence_about_the_address(faulty: FaultyServer, name: str) -> None:
    verification = await verify_live(faulty.url(name), MARKER)
    assert not verification.ok
    assert verification.problem
    assert verification.problem.startswith(faulty.url(name) + " ")
    assert FAULTS[name] in verification.problem


async def test_a_redirect_is_not_followed(faulty: FaultyServer) -> None:
    faulty.requests.clear()
    verification = await verify_live(faulty.url("redirect"), MARKER)
    assert [request.url.path for request in faulty.requests] == ["/redirect"]
    assert verification.status == 301


async def test_a_client_that_follows_redirects_is_kept_from_it(faulty: FaultyServer) -> None:
    verification = await verify_live(
        faulty.url("redirect"),
        MARKER,
        client_factory=lambda: httpx.AsyncClient(follow_redirects=True, trust_env=False),
    )
    assert verification.status == 301
    assert not verification.ok


async def test_the_visitor_is_anonymous_and_says_its_name(
    faulty: FaultyServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    faulty.requests.clear()
    assert (await verify_live(faulty.url("fine"), MARKER)).ok
    (request,) = faulty.requests
    assert request.method == "GET"
    assert request.headers["user-agent"].startswith("Nightdesk/")
    assert not {"cookie", "authorization", "referer"} & set(request.headers)


async def test_a_server_that_drips_is_left_at_the_deadline(faulty: FaultyServer) -> None:
    start = time.monotonic()
    verification = await verify_live(faulty.url("drip"), MARKER, deadline_s=0.3)
    assert time.monotonic() - start < 2
    assert verification.status == 200
    assert not verification.ok


async def test_the_size_limit_counts_decoded_bytes(faulty: FaultyServer) -> None:
    url = faulty.url("fine-gzip")
    size = len(page(MARKER))
    assert (await verify_live(url, MARKER, max_bytes=size)).ok
    assert not (await verify_live(url, MARKER, max_bytes=size - 1)).ok


@pytest.mark.parametrize(
    "url", ["", "example.org/x/", "ftp://x/", "http://", "http://[::1/", "http://x:99999/"]
)
async def test_an_address_that_is_none_is_a_problem_and_no_crash(url: str) -> None:
    verification = await verify_live(url, MARKER)
    assert not verification.ok
    assert verification.problem
    assert "could not be fetched" in verification.problem
