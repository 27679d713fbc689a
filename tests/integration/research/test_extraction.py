"""A page that makes the extraction hang or grow costs its own text and nothing else."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import httpx
import pytest

from nightdesk.errors import Permanent
from nightdesk.research import FetchPolicy
from nightdesk.research.extraction import CHILD, Extractor
from nightdesk.research.web import Answer
from tests.integration.research.conftest import article

ANSWER = Answer(
    httpx.URL("http://news.example/page"), 200, httpx.Headers({"content-type": "text/html"}),
    article("Moths see light.").encode(), True,
)  # fmt: skip

HOSTILE = """
import importlib.util, json, os, sys
spec = importlib.util.spec_from_file_location("real", {child!r})
real = importlib.util.module_from_spec(spec)
spec.loader.exec_module(real)
open({pid!r}, "w").write(str(os.getpid()))
real.extract = lambda task, body: {act}
real.main()
"""


def _hostile(folder: Path, act: str) -> Path:
    path = folder / "hostile.py"
    path.write_text(HOSTILE.format(child=str(CHILD), pid=str(folder / "pid"), act=act))
    return path


def _is_gone(folder: Path) -> bool:
    pid = (folder / "pid").read_text()
    return not Path(f"/proc/{pid}").exists()


async def test_one_that_hangs_is_killed(tmp_path: Path) -> None:
    extractor = Extractor(
        FetchPolicy("Nightdesk", extract_timeout_s=0.7), _hostile(tmp_path, "__import__('time').sleep(60)")
    )
    started = time.monotonic()
    with pytest.raises(Permanent, match=r"took longer than 0\.7 s"):
        await extractor.extract(ANSWER)
    assert time.monotonic() - started < 5
    assert _is_gone(tmp_path)


async def test_one_that_eats_memory_is_stopped(tmp_path: Path) -> None:
    policy = FetchPolicy("Nightdesk", extract_memory_bytes=300 * 1024**2)
    extractor = Extractor(policy, _hostile(tmp_path, "bytearray(600 * 1024**2) and real.page(task, '')"))
    with pytest.raises(Permanent, match="needed more than 300 MiB"):
        await extractor.extract(ANSWER)
    assert _is_gone(tmp_path)


async def test_one_that_answers_nonsense_is_an_error(tmp_path: Path) -> None:
    extractor = Extractor(FetchPolicy("Nightdesk"), _hostile(tmp_path, "{'text': 7}"))
    with pytest.raises(Permanent, match="no text could be extracted"):
        await extractor.extract(ANSWER)


async def test_a_reader_that_is_cancelled_leaves_no_process(tmp_path: Path) -> None:
    extractor = Extractor(FetchPolicy("Nightdesk"), _hostile(tmp_path, "__import__('time').sleep(60)"))
    reading = asyncio.create_task(extractor.extract(ANSWER))
    while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():  # noqa: ASYNC110
        await asyncio.sleep(0.02)
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    assert _is_gone(tmp_path)


async def test_the_process_sees_no_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "sk-secret")
    act = "{'title': None, 'published': None, 'language': None, 'text': str(dict(os.environ)), 'items': []}"
    found = await Extractor(FetchPolicy("Nightdesk"), _hostile(tmp_path, act)).extract(ANSWER)
    assert "sk-secret" not in found["text"]


@pytest.mark.parametrize(
    "markup",
    [
        "<div>" * 60_000 + "deep",
        "<table><tr><td colspan='9007199254740991' rowspan='9007199254740991'>x</td></tr></table>",
        "<table><tr><td colspan=''>x</td><td colspan='-1'>y</td></tr></table>",
        "<p>" + "&#0;&#xd800;&#x110000;" * 100,
        "<a href='" + "(" * 50_000 + "'>x</a>",
    ],
)
async def test_known_traps_end_in_text_or_in_one_sentence(markup: str) -> None:
    body = f"<html><body><p>Moths see light.</p>{markup}</body></html>".encode()
    answer = Answer(ANSWER.url, 200, ANSWER.headers, body, True)
    try:
        found = await Extractor(FetchPolicy("Nightdesk", extract_timeout_s=6)).extract(answer)
    except Permanent as error:
        assert "news.example" in str(error)
    else:
        found["text"].encode()
        assert "\0" not in found["text"]
