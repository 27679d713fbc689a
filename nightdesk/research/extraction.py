"""Extraction in a process of its own, which is killed if it hangs and ends itself if it grows."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import sys
from pathlib import Path
from typing import cast

from nightdesk.errors import Permanent
from nightdesk.research.extract_child import Extract, Item, Task
from nightdesk.research.policy import FetchPolicy
from nightdesk.research.quoting import without_invisible
from nightdesk.research.web import Answer
from nightdesk.text import storable

CHILD = Path(__file__).with_name("extract_child.py")
_AT_ONCE = 2
_FEED_TYPES = frozenset({"application/rss+xml", "application/atom+xml", "application/rdf+xml"})
# Feeds are often sent as XML or even as HTML: their root element tells.
_FEED_ROOT = re.compile(rb"(?is)\A[^<]{0,16}(?:<[?!][^>]{0,500}>\s*){0,10}<(?:rss|feed|rdf:rdf)[\s>]")


class Extractor:
    """Gives the text of fetched bodies."""

    def __init__(self, policy: FetchPolicy, child: Path = CHILD) -> None:
        self._policy = policy
        self._child = child
        self._turn = asyncio.Semaphore(_AT_ONCE)

    async def extract(self, answer: Answer) -> Extract:
        """The text and what the body says of itself; the text is empty if there is none.

        Raises:
            Permanent: if the extraction took too long, too much memory, or failed.
        """
        policy = self._policy
        task = Task(
            kind=kind_of(answer),
            url=str(answer.url),
            content_type=answer.headers.get("content-type", ""),
            max_text_chars=policy.max_text_chars,
            feed_items=policy.feed_items,
            timeout_s=policy.extract_timeout_s,
            memory_bytes=policy.extract_memory_bytes,
        )
        async with self._turn:
            written = await self._run(task, answer.body)
        try:
            found = cast("Extract", json.loads(written))
            return _clean(found, policy.max_text_chars)
        except (ValueError, TypeError, KeyError) as error:
            raise Permanent(f"{answer.url}: no text could be extracted from its {task['kind']}") from error

    async def _run(self, task: Task, body: bytes) -> bytes:
        # An empty environment: what a hostile page might make a parser do finds no keys there. -I
        # keeps the working folder off the import path.
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-I", "-X", "utf8", str(self._child),
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
            env={}, start_new_session=True,
        )  # fmt: skip
        try:
            async with asyncio.timeout(task["timeout_s"]):
                written, _ = await process.communicate(json.dumps(task).encode() + b"\n" + body)
        except TimeoutError as error:
            raise Permanent(
                f"{task['url']}: extracting its text took longer than {task['timeout_s']:g} s"
            ) from error
        finally:
            # Also if the caller is cancelled: no process outlives its question.
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
                await process.communicate()
        if process.returncode:
            memory_mib = task["memory_bytes"] // 1024**2
            raise Permanent(
                f"{task['url']}: extracting its text failed or needed more than {memory_mib} MiB "
                f"(exit {process.returncode})"
            )
        return written


def kind_of(answer: Answer) -> str:
    """`feed`, `plain` or `page`, by content type and root element."""
    if answer.media_type in _FEED_TYPES:
        return "feed"
    if answer.media_type == "text/plain":
        return "plain"
    return "feed" if _FEED_ROOT.match(answer.body, 0, 8192) else "page"


def _clean(found: Extract, max_chars: int) -> Extract:
    items = [
        Item(link=storable(item["link"]), title=_field(item["title"]), published=_field(item["published"]))
        for item in found["items"]
    ]
    return Extract(
        title=_field(found["title"]),
        published=_field(found["published"]),
        language=_field(found["language"]),
        text=storable(without_invisible(found["text"])).strip()[:max_chars],
        items=items,
    )


def _field(text: str | None) -> str | None:
    return storable(without_invisible(text)).strip() or None if text else None
