from __future__ import annotations

import asyncio
import errno
import multiprocessing
import os
import resource
import tempfile
import threading
import time
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from nightdesk.errors import Blocked, JobError, Lane, LaneKind, Transient
from nightdesk.languages import LANGUAGES
from nightdesk.publishing.files import blocking, locked
from nightdesk.publishing.port import marker_comment
from nightdesk.publishing.static_site import StaticSite
from tests.contract.sites import a_page

LANE = Lane(LaneKind.SITE, "night")


def site_in(folder: Path, **changes: object) -> StaticSite:
    return StaticSite("night", "Night", folder, "https://example.org/n/", **changes)  # type: ignore[arg-type]


def contents(folder: Path) -> dict[str, tuple[bytes, int, int]]:
    """Bytes, inode and time of change of every file."""
    return {
        str(path.relative_to(folder)): (
            path.read_bytes(),
            path.stat().st_ino,
            path.stat().st_mtime_ns,
        )
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def leftovers(folder: Path) -> list[Path]:
    return list(folder.rglob("*.tmp"))


async def test_a_publication_writes_the_promised_files(tmp_path: Path) -> None:
    page = a_page()
    placement = await site_in(tmp_path).publish(page)
    assert placement.url == "https://example.org/n/night-trains/"
    assert set(contents(tmp_path)) == {
        "night-trains/index.html",
        "index.html",
        "sitemap.xml",
        "feed.xml",
        "style.css",
        "robots.txt",
        ".site/lock",
        f".site/articles/{page.marker}.json",
    }
    assert "https://example.org/n/sitemap.xml" in (tmp_path / "robots.txt").read_text()


async def test_publishing_the_same_page_again_touches_no_file(tmp_path: Path) -> None:
    page = a_page()
    await site_in(tmp_path).publish(page)
    before = contents(tmp_path)
    await site_in(tmp_path).publish(page)
    await site_in(tmp_path).preflight()
    assert contents(tmp_path) == before


async def test_what_a_killed_publisher_left_half_written_is_cleared_away(tmp_path: Path) -> None:
    page = a_page()
    placement = await site_in(tmp_path).publish(page)
    for folder in (tmp_path, tmp_path / placement.slug):
        (folder / ".index.html.tmp").write_text("<p>hal")
    await site_in(tmp_path).publish(page)
    assert not leftovers(tmp_path)


async def test_two_languages_live_on_one_site(tmp_path: Path) -> None:
    site = site_in(tmp_path)
    await site.publish(a_page())
    await site.publish(a_page(slug="", title="తెలుగు భాష", language=LANGUAGES["te"]))
    assert 'lang="te"' in (tmp_path / "telugu-bhasha" / "index.html").read_text()
    assert 'lang="en"' in (tmp_path / "night-trains" / "index.html").read_text()
    assert len(ET.parse(tmp_path / "sitemap.xml").getroot()) == 3


async def test_a_page_deleted_by_hand_is_not_found_and_comes_back_at_its_address(
    tmp_path: Path,
) -> None:
    site, page = site_in(tmp_path), a_page()
    first = await site.publish(page)
    (tmp_path / first.slug / "index.html").unlink()
    assert await site.find(page.marker) is None
    assert await site.publish(replace(page, slug="other")) == first
    assert await site.find(page.marker) == first


async def test_a_page_without_its_record_keeps_its_address(tmp_path: Path) -> None:
    site, page = site_in(tmp_path), a_page()
    first = await site.publish(page)
    (tmp_path / ".site" / "articles" / f"{page.marker}.json").unlink()
    assert await site.find(page.marker) is None
    assert await site.publish(page) == first


async def test_a_page_overwritten_by_another_is_not_found(tmp_path: Path) -> None:
    site, page = site_in(tmp_path), a_page()
    placement = await site.publish(page)
    (tmp_path / placement.slug / "index.html").write_text("<p>hand-made</p>")
    assert await site.find(page.marker) is None


async def test_a_folder_made_by_hand_is_never_overwritten(tmp_path: Path) -> None:
    site = site_in(tmp_path)
    await site.preflight()
    (tmp_path / "night-trains").mkdir()
    (tmp_path / "night-trains" / "photo.jpg").write_bytes(b"x")
    assert (await site.publish(a_page())).slug == "night-trains-2"
    assert (tmp_path / "night-trains" / "photo.jpg").exists()


async def test_a_folder_with_somebody_elses_site_is_refused(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("my old site")
    for attempt in (site_in(tmp_path).preflight(), site_in(tmp_path).publish(a_page())):
        with pytest.raises(Blocked, match="a folder of its own") as caught:
            await attempt
        assert caught.value.lane == LANE
    assert [path.name for path in tmp_path.iterdir()] == ["index.html"]


@pytest.mark.parametrize("address", ["", "example.org", "ftp://example.org", "http://", "http://x/?a"])
async def test_preflight_refuses_an_address_that_is_none(tmp_path: Path, address: str) -> None:
    with pytest.raises(Blocked, match="base_url") as caught:
        await StaticSite("night", "Night", tmp_path, address).preflight()
    assert caught.value.lane == LANE


async def test_preflight_makes_an_empty_site_that_can_be_looked_at(tmp_path: Path) -> None:
    await site_in(tmp_path / "new" / "site").preflight()
    assert "Nothing has been published" in (tmp_path / "new" / "site" / "index.html").read_text()


async def test_a_folder_that_cannot_exist_blocks_the_site(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for folder in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(Blocked, match="check the folder") as caught:
            await site_in(folder).preflight()
        assert caught.value.lane == LANE
        assert str(folder) in str(caught.value)


async def test_a_damaged_record_blocks_the_site_and_names_the_file(tmp_path: Path) -> None:
    site, page = site_in(tmp_path), a_page()
    await site.publish(page)
    record = tmp_path / ".site" / "articles" / f"{page.marker}.json"
    record.write_text(record.read_text()[:40])
    for attempt in (site.find(page.marker), site.publish(page), site.preflight()):
        with pytest.raises(Blocked, match=record.name) as caught:
            await attempt
        assert caught.value.lane == LANE


async def test_a_publisher_waits_for_another_and_then_says_to_try_later(tmp_path: Path) -> None:
    site = site_in(tmp_path, lock_wait_s=0.1)
    await site.preflight()
    with locked(tmp_path / ".site" / "lock", LANE, 1), pytest.raises(Transient, match="another"):
        await site.publish(a_page())
    await site.publish(a_page())


def test_threads_exclude_each_other(tmp_path: Path) -> None:
    inside, most = 0, 0

    def enter() -> None:
        nonlocal inside, most
        with locked(tmp_path / "lock", LANE, 10):
            inside += 1
            most = max(most, inside)
            time.sleep(0.005)
            inside -= 1

    threads = [threading.Thread(target=enter) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 1


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that other users can reach, unlike `tmp_path`."""
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        yield Path(name)


def outcome_in_child(prepare: Callable[[], None], act: Callable[[], object]) -> str:
    """What `act` raised in a child process of its own, or "fine"."""
    context = multiprocessing.get_context("fork")
    reader, writer = context.Pipe(duplex=False)

    def run() -> None:
        prepare()
        try:
            act()
        except JobError as error:
            writer.send(f"{type(error).__name__} {error.lane}: {error}")
        else:
            writer.send("fine")

    child = context.Process(target=run)
    child.start()
    assert reader.poll(20)
    result: str = reader.recv()
    child.join(10)
    return result


def become_nobody() -> None:
    if os.geteuid() == 0:
        os.setgid(65534)
        os.setuid(65534)


def test_a_folder_that_must_not_be_written_blocks_the_site(open_folder: Path) -> None:
    site = site_in(open_folder)
    asyncio.run(site.publish(a_page()))
    for folder in (open_folder, open_folder / ".site", open_folder / ".site" / "articles"):
        folder.chmod(0o555)
    before = contents(open_folder)
    result = outcome_in_child(become_nobody, lambda: asyncio.run(site.publish(a_page())))
    assert result.startswith("Blocked site night: ")
    assert "writing is not allowed" in result
    assert str(open_folder) in result
    assert contents(open_folder) == before


def test_a_full_disk_blocks_the_site_and_leaves_no_half_file(tmp_path: Path) -> None:
    site, page = site_in(tmp_path), a_page()
    asyncio.run(site.publish(page))
    before = contents(tmp_path)
    longer = replace(page, markdown="Much longer. " * 1_000)

    def limit_files() -> None:
        # A file may not grow beyond this: then the kernel refuses, as on a full disk.
        resource.setrlimit(resource.RLIMIT_FSIZE, (4_096, 4_096))

    result = outcome_in_child(limit_files, lambda: asyncio.run(site.publish(longer)))
    assert result.startswith("Blocked site night: ")
    assert "no room left" in result
    assert contents(tmp_path) == before
    assert not leftovers(tmp_path)
    asyncio.run(site.publish(longer))
    assert "Much longer." in (tmp_path / "night-trains" / "index.html").read_text()


def test_processes_that_publish_at_once_leave_every_article_in_every_list(tmp_path: Path) -> None:
    pages = [a_page(published_at=datetime(2026, 11, day, tzinfo=UTC)) for day in range(1, 13)]

    def publish(part: int) -> None:
        for page in pages[part::3]:
            asyncio.run(site_in(tmp_path).publish(page))

    context = multiprocessing.get_context("fork")
    children = [context.Process(target=publish, args=(part,)) for part in range(3)]
    for child in children:
        child.start()
    for child in children:
        child.join(30)
    assert [child.exitcode for child in children] == [0, 0, 0]
    assert len(ET.parse(tmp_path / "sitemap.xml").getroot()) == len(pages) + 1
    shown = "".join(path.read_text() for path in tmp_path.glob("*/index.html"))
    assert [shown.count(marker_comment(page.marker)) for page in pages] == [1] * len(pages)


def test_a_full_disk_is_told_from_a_missing_permission() -> None:
    for number, words in ((errno.ENOSPC, "no room left"), (errno.EROFS, "not allowed")):
        with pytest.raises(Blocked, match=words), blocking(LANE, Path("/x")):
            raise OSError(number, os.strerror(number), "/x/y")
