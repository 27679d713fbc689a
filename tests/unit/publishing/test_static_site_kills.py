"""A site survives the death of its publisher at any instruction."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import random
import signal
import time
import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from uuid import UUID

import pytest

from nightdesk.publishing.port import Page, content_sha256, marker_comment
from nightdesk.publishing.static_site import StaticSite
from tests.contract.sites import a_page

FORK = multiprocessing.get_context("fork")


def site_in(folder: Path) -> StaticSite:
    return StaticSite("night", "Night", folder, "https://example.org")


def publish(folder: Path, page: Page) -> str:
    return asyncio.run(site_in(folder).publish(page)).slug


def assert_consistent(folder: Path, markers: list[UUID]) -> None:
    """Whole files only, one page per article, and `find` reports nothing that is not there."""
    pages = {path.parent.name: path.read_text() for path in folder.glob("*/index.html")}
    assert all(html.endswith("</html>\n") for html in pages.values())
    for name in ("sitemap.xml", "feed.xml"):
        if (folder / name).exists():
            ET.parse(folder / name)
    front = (folder / "index.html").read_text() if (folder / "index.html").exists() else ""
    assert not front or front.endswith("</html>\n")
    for marker in markers:
        slugs = [slug for slug, html in pages.items() if marker_comment(marker) in html]
        assert len(slugs) <= 1
        found = asyncio.run(site_in(folder).find(marker))
        if found is not None:
            assert slugs == [found.slug]
            assert f'href="{found.slug}/"' in front


def killed_at(step: int, function: str, *, before: bool, act: Callable[[], object]) -> bool:
    """Run `act` in a child that is killed around the `step`-th call of `os.<function>`.

    False if the child ended by itself, having made fewer calls.
    """

    def run() -> None:
        real = getattr(os, function)
        calls = 0

        def counted(*args: object, **kwargs: object) -> object:
            nonlocal calls
            calls += 1
            if before and calls == step:
                os.kill(os.getpid(), signal.SIGKILL)
            result = real(*args, **kwargs)
            if calls == step:
                os.kill(os.getpid(), signal.SIGKILL)
            return result

        setattr(os, function, counted)
        act()

    child = FORK.Process(target=run)
    child.start()
    child.join(20)
    assert child.exitcode in {0, -signal.SIGKILL}
    return child.exitcode != 0


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("function", ["replace", "fsync"])
def test_a_kill_at_any_write_is_repaired_by_publishing_again(
    tmp_path: Path, function: str, before: bool
) -> None:
    step = 0
    while True:
        step += 1
        folder = tmp_path / str(step)
        page, neighbour = a_page(), a_page()
        publish(folder, neighbour)
        killed = killed_at(step, function, before=before, act=partial(publish, folder, page))
        assert_consistent(folder, [page.marker, neighbour.marker])
        # The next attempt wants another slug: it must not leave two pages.
        again = replace(page, slug="another-slug")
        assert publish(folder, again) in {"night-trains-2", "another-slug"}
        assert_consistent(folder, [page.marker, neighbour.marker])
        found = asyncio.run(site_in(folder).find(page.marker))
        assert found is not None
        assert found.content_sha256 == content_sha256(page)
        assert len(ET.parse(folder / "sitemap.xml").getroot()) == 3
        assert not list(folder.rglob("*.tmp"))
        if not killed:
            break
    assert step > 5


def test_a_killed_update_is_never_reported_as_made(tmp_path: Path) -> None:
    page = a_page()
    changed = replace(page, title="Sleeper trains", markdown="New.")
    for step in range(1, 8):
        folder = tmp_path / str(step)
        publish(folder, page)
        killed = killed_at(step, "replace", before=True, act=partial(publish, folder, changed))
        found = asyncio.run(site_in(folder).find(page.marker))
        assert found is not None
        is_new = found.content_sha256 == content_sha256(changed)
        assert is_new is not killed
    assert not killed


def test_kills_at_random_moments_leave_a_consistent_site(tmp_path: Path) -> None:
    seed = random.SystemRandom().randrange(1_000_000)
    moments = random.Random(seed)
    pages = [a_page(title=f"Trains {number}", slug="") for number in range(4)]

    def publish_for_ever() -> None:
        number = 0
        while True:
            number += 1
            publish(tmp_path, replace(pages[number % 4], markdown=f"Edition {number}. " * 2_000))

    for _ in range(5):
        child = FORK.Process(target=publish_for_ever)
        child.start()
        time.sleep(moments.uniform(0.03, 0.25))
        child.kill()
        child.join(10)
        assert child.exitcode == -signal.SIGKILL, f"seed {seed}"
        assert_consistent(tmp_path, [page.marker for page in pages])
    for page in pages:
        publish(tmp_path, page)
    assert_consistent(tmp_path, [page.marker for page in pages])
    assert len(ET.parse(tmp_path / "sitemap.xml").getroot()) == 5, f"seed {seed}"
    assert not list(tmp_path.rglob("*.tmp"))
