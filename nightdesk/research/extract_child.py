"""Text out of HTML, feeds and plain text: a script that runs in a process of its own.

Hostile input makes parsers hang or take all memory, so the process limits itself first and imports
the parsers only then. It is started by its path and imports nothing of the package: stdin has one
line of JSON (a `Task`) and then the body, stdout gets one JSON object (an `Extract`).
"""

from __future__ import annotations

import codecs
import contextlib
import io
import json
import math
import re
import resource
import signal
import sys
import time
from typing import TYPE_CHECKING, Any, TypedDict

if TYPE_CHECKING:
    from lxml.html import HtmlElement


class Task(TypedDict):
    """What the body is and how much may be used for it."""

    kind: str  # "page", "feed" or "plain"
    url: str
    content_type: str
    max_text_chars: int
    feed_items: int
    timeout_s: float
    memory_bytes: int


class Item(TypedDict):
    """One article that a feed names; `published` is ISO 8601 in UTC."""

    link: str
    title: str | None
    published: str | None


class Extract(TypedDict):
    """What was found; `text` is empty if there is none."""

    title: str | None
    published: str | None
    language: str | None
    text: str
    items: list[Item]


_MAX_FIELD_CHARS = 500
# Longer ones do not fit into an index of Postgres (2704 bytes).
MAX_LINK_CHARS = 2000
_LANGUAGE = re.compile(r"[A-Za-z]{2,3}([-_][A-Za-z0-9]{2,8}){0,3}")
_HEADER_CHARSET = re.compile(r"""charset\s*=\s*["']?([A-Za-z0-9._:-]{2,40})""", re.IGNORECASE)
_META_CHARSET = re.compile(
    rb"""<(?:meta[^>]{0,200}?charset|\?xml[^>]{0,200}?encoding)\s*=\s*["']?([A-Za-z0-9._:-]{2,40})""",
    re.IGNORECASE,
)
# Python has codecs that are no charsets of the web (rot13, idna, unicode_escape, utf-7).
_WEB_CHARSET = re.compile(
    r"(utf-?8|utf-?16|us-ascii|ascii|iso-?8859|latin|windows-|cp125|koi8|gb|big5|euc-|shift_jis|sjis|"
    r"iso-2022-jp|mac|ibm866|tis-620)",
    re.IGNORECASE,
)
_BYTE_ORDER_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
# NUL ends a document for libxml2; the other controls are refused by XML.
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")

_NEVER_SHOWN = (
    "script", "style", "template", "noscript", "iframe", "object", "embed", "svg", "canvas", "audio", "video",
    "input", "select", "textarea", "button", "datalist", "dialog",
)  # fmt: skip
_SPOKEN_ATTRIBUTES = ("alt", "title", "aria-label", "placeholder", "summary", "srcdoc", "content")
_ZERO = r"(0+\.?0*|\.0+)(?![\d.])"
_HIDING_STYLE = re.compile(
    r"(^|;)(display:none|visibility:(hidden|collapse)|content-visibility:hidden"
    rf"|(opacity|font-size):{_ZERO}|(color|-webkit-text-fill-color):transparent"
    r"|clip:rect\([01](px)?[,)]|clip-path:inset\((50|100)%|(left|top|text-indent):-\d{3,})"
)
_CSS_NOISE = re.compile(r"/\*.*?\*/|\s", re.DOTALL)


def limit(task: Task) -> None:
    """Bound this process: address space, CPU seconds, and an alarm of its own if the parent is gone."""
    seconds = math.ceil(task["timeout_s"]) + 1
    wanted = {"RLIMIT_AS": task["memory_bytes"], "RLIMIT_CPU": seconds, "RLIMIT_FSIZE": 0, "RLIMIT_CORE": 0}
    for name, value in wanted.items():
        # A system may not know a limit, or have a lower one already.
        with contextlib.suppress(AttributeError, ValueError, OSError):
            resource.setrlimit(getattr(resource, name), (value, value))
    signal.alarm(seconds + 1)


def decoded(body: bytes, content_type: str) -> str:
    """A body as text: mark, valid UTF-8, header, declaration in the text, then by its letters."""
    for mark, charset in _BYTE_ORDER_MARKS.items():
        if body.startswith(mark):
            return body.decode(charset, errors="replace")
    names = ["utf-8"]
    if header := _HEADER_CHARSET.search(content_type):
        names.append(header[1])
    if meta := _META_CHARSET.search(body, 0, 4096):
        names.append(meta[1].decode("ascii"))
    for name in names:
        # The Encoding Standard reads Latin-1 and ASCII as windows-1252.
        charset = "cp1252" if re.fullmatch(r"(?i)(iso-?8859-?1|latin-?1|(us-)?ascii)", name) else name
        with contextlib.suppress(LookupError, UnicodeError):
            if _WEB_CHARSET.match(charset):
                return body.decode(charset)
    declared_utf8 = any(name.lower() in ("utf-8", "utf8") for name in names[1:])
    return body.decode("utf-8" if declared_utf8 else _detected(body), errors="replace")


def _detected(body: bytes) -> str:
    import charset_normalizer

    best = charset_normalizer.from_bytes(body[:65_536]).best()
    return best.encoding if best is not None else "cp1252"


def without_hidden(tree: HtmlElement) -> None:
    """Remove in place what a reader of the page does not see, and the texts that replace pictures."""
    from lxml import etree

    doomed = [
        node
        for node in tree.iter()
        # A page that is hidden as a whole only waits for its script.
        if node is not tree and node.tag != "body" and (not isinstance(node.tag, str) or _is_hidden(node))
    ]
    for node in doomed:
        parent = node.getparent()
        if parent is not None:
            node.drop_tree() if isinstance(node.tag, str) else _drop_keeping_tail(parent, node)
    # What is shown has been decided: the extraction must not judge a style again, more roughly.
    etree.strip_attributes(tree, *_SPOKEN_ATTRIBUTES, "style")


def _drop_keeping_tail(parent: Any, node: Any) -> None:
    tail, before = node.tail or "", node.getprevious()
    if before is not None:
        before.tail = (before.tail or "") + tail
    else:
        parent.text = (parent.text or "") + tail
    parent.remove(node)


def _is_hidden(node: Any) -> bool:
    style = _CSS_NOISE.sub("", node.get("style") or "").lower()
    return (
        node.tag in _NEVER_SHOWN
        or "hidden" in node.attrib
        or (node.get("aria-hidden") or "").strip().lower() == "true"
        or bool(style and _HIDING_STYLE.search(style))
    )


def page(task: Task, markup: str) -> Extract:
    """The main text of a page; everything visible if no main text is found."""
    import trafilatura
    from trafilatura.metadata import extract_metadata

    found = Extract(title=None, published=None, language=None, text="", items=[])
    tree = trafilatura.load_html(markup)
    if tree is None:
        return found
    found["language"] = _language(tree.get("lang") or tree.get("{http://www.w3.org/XML/1998/namespace}lang"))
    with contextlib.suppress(Exception):
        dates = {"extensive_search": False, "original_date": True}
        metadata = extract_metadata(tree, task["url"], dates, True, set())
        found["title"], found["published"] = _field(metadata.title), _field(metadata.date)
    without_hidden(tree)
    with contextlib.suppress(Exception):
        document = trafilatura.bare_extraction(tree, include_comments=False, include_images=False)
        found["text"] = (getattr(document, "text", "") or "").strip()
    if not found["text"]:
        with contextlib.suppress(Exception):
            found["text"] = trafilatura.baseline(tree)[1].strip()
    return found


def feed(task: Task, body: bytes) -> Extract:
    """The first articles that a feed names, and what it says of them itself."""
    import feedparser

    # Bytes that are not in a file object would be tried as the name of a file first.
    headers = {"content-type": task["content_type"], "content-location": task["url"]}
    parsed = feedparser.parse(io.BytesIO(body), response_headers=headers, sanitize_html=True)
    items, said, seen = list[Item](), list[str](), set[str]()
    for entry in parsed.entries:
        link = str(entry.get("link") or "").strip()
        if not link or len(link) > MAX_LINK_CHARS or link in seen:
            continue
        if len(items) == task["feed_items"]:
            break
        seen.add(link)
        moment = entry.get("published_parsed") or entry.get("updated_parsed")
        title = _field(_visible_text(entry.get("title")))
        items.append(Item(link=link, title=title, published=_iso(moment)))
        said.append("\n".join(filter(None, (title, _visible_text(entry.get("summary"))))))
    about = parsed.feed
    return Extract(
        title=_field(_visible_text(about.get("title"))),
        published=_iso(about.get("updated_parsed") or about.get("published_parsed")),
        language=_language(about.get("language")),
        text="\n\n".join(filter(None, said)),
        items=items,
    )


def _visible_text(markup: Any) -> str:
    from lxml import etree, html

    try:
        tree = html.fragment_fromstring(_CONTROLS.sub("", str(markup or "")), create_parent="div")
        without_hidden(tree)
        return " ".join(str(tree.text_content()).split())
    except (etree.LxmlError, ValueError):
        return ""


def _iso(moment: Any) -> str | None:
    try:
        return time.strftime("%Y-%m-%dT%H:%M:%SZ", moment) if moment else None
    except (TypeError, ValueError):
        return None


def _language(tag: Any) -> str | None:
    tag = str(tag or "").strip()
    return tag.replace("_", "-") if _LANGUAGE.fullmatch(tag) else None


def _field(value: Any) -> str | None:
    return " ".join(str(value or "").split())[:_MAX_FIELD_CHARS] or None


def extract(task: Task, body: bytes) -> Extract:
    """Do what the task says."""
    if task["kind"] == "feed":
        found = feed(task, body)
    else:
        text = _CONTROLS.sub("", decoded(body, task["content_type"]))
        if task["kind"] == "plain":
            found = Extract(title=None, published=None, language=None, text=text.strip(), items=[])
        else:
            found = page(task, text)
    found["text"] = found["text"][: task["max_text_chars"]]
    return found


def main() -> None:
    """Read the task and the body, write the result."""
    task: Task = json.loads(sys.stdin.buffer.readline())
    limit(task)
    body = sys.stdin.buffer.read()
    sys.stdout.write(json.dumps(extract(task, body)))


if __name__ == "__main__":
    main()
