"""Topics come in: from a file or one by one, checked whole before anything is written."""

from __future__ import annotations

import csv
import io
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import regex
from sqlalchemy import text
from sqlmodel import Session

from nightdesk.desk import queue
from nightdesk.desk.queue import Limits
from nightdesk.errors import ConfigError, InputError, InputProblem
from nightdesk.languages import language
from nightdesk.states import Phase
from nightdesk.world import World

COLUMNS = ("topic", "keyword", "site", "language", "priority", "audience", "min_words", "sources")
REQUIRED = ("topic", "keyword", "site")
_COLUMN_LIST = ", ".join(COLUMNS)
MAX_CHARS = {"topic": 200, "keyword": 80, "audience": 300}
MAX_SOURCES = 20
MAX_URL_CHARS = 2_000
_PICTOGRAPH = regex.compile(r"[\p{Extended_Pictographic}\U0001F1E6-\U0001F1FF--[#*0-9©®™]]", regex.V1)
_WORD = regex.compile(r"\p{L}[\p{L}\p{M}\p{N}]*")
Wrong = Callable[[str, str], None]  #: takes a column's name and what is wrong with it
_CONTROL = regex.compile(r"[\p{Cc}--[\t]]", regex.V1)
# How Python hands on bytes of the command line that are not in the terminal's encoding.
_UNDECODED = regex.compile(r"\p{Cs}")
# Embeddings, overrides and isolates reorder what stands around them, on the page and in this message.
_DIRECTION = regex.compile(r"[\u202A-\u202E\u2066-\u2069]")


@dataclass(frozen=True, slots=True)
class Topic:
    """A checked ask: one article for one site."""

    topic: str
    keyword: str
    site: str
    language: str = "en"
    priority: int = 0
    audience: str = ""
    min_words: int = 300
    sources: tuple[str, ...] = ()
    line: int | None = None

    @property
    def key(self) -> str:
        """The topic without case, punctuation and spacing: what makes two topics the same."""
        folded = unicodedata.normalize("NFKC", self.topic).casefold()
        return " ".join(regex.findall(r"[\p{L}\p{M}\p{N}]+", folded))


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import did."""

    added: int
    existing: int


def read_topics(path: Path, sites: Iterable[str]) -> list[Topic]:
    """The topics of a CSV file.

    Raises:
        InputError: listing every problem with its line and column.
    """
    rows, problems = _rows(path)
    topics: list[Topic] = []
    first_line: dict[tuple[str, str, str], int] = {}
    for line, row in rows:
        topic = parse_topic(row, sites, problems, line)
        if topic is None:
            continue
        seen = first_line.setdefault((topic.site, topic.language, topic.key), line)
        if seen != line:
            problems.append(InputProblem(f"the same topic as in line {seen}", line, "topic"))
        topics.append(topic)
    if not topics and not problems:
        problems.append(InputProblem("the file has no topics"))
    if problems:
        raise InputError(str(path), sorted(problems, key=lambda problem: problem.line or 0))
    return topics


def _rows(path: Path) -> tuple[list[tuple[int, dict[str, str]]], list[InputProblem]]:
    """The data rows with their line numbers. Only a wrong header or encoding ends the reading."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise InputError(str(path), [InputProblem(f"cannot be read: {error.strerror}")]) from None
    try:
        content = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line, column = _place(raw, error.start)
        raise InputError(
            str(path),
            [InputProblem(f"not UTF-8 (byte {error.start}): save the file as UTF-8", line, column)],
        ) from None
    if not content.strip():
        raise InputError(str(path), [InputProblem(f"the file is empty: its columns are {_COLUMN_LIST}")])
    problems: list[InputProblem] = []
    rows = []
    records = _records(content, path)
    _, header = next(records, (1, []))
    names = _check_header(path, header)
    for line, cells in records:
        if not any(cell.strip() for cell in cells):
            continue
        if len(cells) != len(names):
            problem = f"{len(cells)} cells for {len(names)} columns: is a comma not quoted?"
            # The first column without a cell, or the last one, which has too many.
            problems.append(InputProblem(problem, line, names[min(len(cells), len(names) - 1)]))
            continue
        rows.append((line, dict(zip(names, (cell.strip() for cell in cells), strict=True))))
    return rows, problems


def _place(raw: bytes, position: int) -> tuple[int, str | None]:
    """Line and column name of a byte, as far as the header tells."""
    line_start = raw.rfind(b"\n", 0, position) + 1
    line = raw.count(b"\n", 0, position) + 1
    header = raw.split(b"\n", 1)[0].decode("utf-8-sig", "replace").strip().split(",")
    index = raw.count(b",", line_start, position)
    return line, header[index] if line > 1 and index < len(header) else None


def _records(content: str, path: Path) -> Iterator[tuple[int, list[str]]]:
    reader = csv.reader(io.StringIO(content, newline=""), strict=True)
    start = 1
    try:
        for cells in reader:
            yield start, cells
            start = reader.line_num + 1
    except csv.Error as error:
        raise InputError(str(path), [InputProblem(f"not valid CSV: {error}", start)]) from None


def _check_header(path: Path, header: Sequence[str]) -> list[str]:
    names = [name.strip().lower() for name in header]
    for mark, called in ((";", "semicolons"), ("\t", "tabs")):
        if len(names) == 1 and mark in names[0]:
            problem = f"the columns are separated by {called}: save the file as CSV with commas"
            raise InputError(str(path), [InputProblem(problem, 1)])
    problems = [
        InputProblem(f"unknown column; the columns are {_COLUMN_LIST}", 1, name or "(empty)")
        for name in names
        if name not in COLUMNS
    ]
    problems += [InputProblem("column is missing", 1, name) for name in REQUIRED if name not in names]
    problems += [InputProblem("column twice", 1, name) for name in set(names) if names.count(name) > 1]
    if problems:
        raise InputError(str(path), problems)
    return names


def parse_topic(
    row: dict[str, str], sites: Iterable[str], problems: list[InputProblem], line: int | None = None
) -> Topic | None:
    """One topic from its cells; None if something was wrong and went to `problems`."""
    before = len(problems)

    def wrong(column: str, message: str) -> None:
        problems.append(InputProblem(message, line, column))

    for column in ("topic", "keyword"):
        _check_words(column, row.get(column, ""), wrong)
    for column, limit in MAX_CHARS.items():
        length = len(row.get(column, ""))
        if length > limit:
            wrong(column, f"{length} characters, at most {limit} are allowed")
    if unseen := _unseen(row.get("audience", "")):
        wrong("audience", unseen)
    known = sorted(sites)
    if row.get("site", "") not in known:
        named = f"unknown site '{row.get('site', '')}'" if row.get("site") else "is empty"
        wrong("site", f"{named}; the sites are {', '.join(known)}")
    try:
        tag = language(row.get("language") or "en").tag
    except ConfigError as error:
        wrong("language", str(error))
        tag = ""
    priority = _whole_number(row, "priority", 0, 0, 9, wrong)
    min_words = _whole_number(row, "min_words", 300, 50, 10_000, wrong)
    sources = _sources(row.get("sources", ""), wrong)
    if len(problems) > before:
        return None
    return Topic(
        topic=unicodedata.normalize("NFC", row["topic"]),
        keyword=unicodedata.normalize("NFC", row["keyword"]),
        site=row["site"],
        language=tag,
        priority=priority,
        audience=row.get("audience", ""),
        min_words=min_words,
        sources=sources,
        line=line,
    )


def _check_words(column: str, value: str, wrong: Wrong) -> None:
    if not value:
        wrong(column, "is empty")
    elif found := _PICTOGRAPH.search(value):
        # It would end in the page's title and address, and no text repeats it as a keyword.
        wrong(column, f"the emoji '{found[0]}' cannot stand here: write it in words")
    elif unseen := _unseen(value):
        wrong(column, unseen)
    elif not _WORD.search(value):
        wrong(column, "has no word in it")


def _unseen(value: str) -> str | None:
    """What is wrong with a cell that holds more than is seen of it."""
    if _UNDECODED.search(value):
        return "its bytes are not text in this terminal's encoding: use UTF-8, such as LC_ALL=C.UTF-8"
    if _CONTROL.search(value):
        return "a control character or line break"
    if found := _DIRECTION.search(value):
        return f"an invisible character that turns the text's direction (U+{ord(found[0]):04X}): remove it"
    return None


def _whole_number(row: dict[str, str], column: str, default: int, low: int, high: int, wrong: Wrong) -> int:
    given = row.get(column, "")
    if not given:
        return default
    if not (given.isascii() and given.isdecimal()) or not low <= int(given[:9]) <= high:
        wrong(column, f"'{given[:20]}' is not a whole number from {low} to {high}")
        return default
    return int(given)


def _sources(given: str, wrong: Wrong) -> tuple[str, ...]:
    urls = tuple(dict.fromkeys(regex.split(r"[\s|]+", given.strip()))) if given.strip() else ()
    for url in urls:
        if not regex.fullmatch(r"https?://[^/?#\s]+\S*", url) or len(url) > MAX_URL_CHARS:
            wrong("sources", f"'{url[:80]}' is not an http:// or https:// address")
        elif unseen := _unseen(url):
            wrong("sources", unseen)
    if len(urls) > MAX_SOURCES:
        wrong("sources", f"{len(urls)} addresses, at most {MAX_SOURCES} are allowed")
    return urls


_ADD = text("""
    INSERT INTO nightdesk.articles (id, topic, topic_key, site, language, keyword, audience, min_words,
        priority, source_urls)
    VALUES (:id, :topic, :topic_key, :site, :language, :keyword, :audience, :min_words,
        :priority, :source_urls)
    ON CONFLICT (site, language, topic_key) DO NOTHING RETURNING id
""")

_ONE_AT_A_TIME = text("SELECT pg_advisory_xact_lock(hashtext('nightdesk.articles'))")

_THERE = text("""
    SELECT a.site, a.language, a.topic_key, a.number FROM nightdesk.articles a
    JOIN unnest(cast(:sites AS text[]), cast(:languages AS text[]), cast(:keys AS text[]))
        wanted (site, language, topic_key) USING (site, language, topic_key)
""")


def add_topics(
    session: Session,
    world: World,
    topics: Sequence[Topic],
    limits: Limits,
    *,
    source: str,
    skip_existing: bool = False,
) -> Imported:
    """Make articles and their first jobs, all or none.

    Raises:
        InputError: if a topic is there already and `skip_existing` is false.
    """
    # One import at a time: two that hold the same topics in another order would deadlock.
    session.connection().execute(_ONE_AT_A_TIME)
    there = _there(session, topics)
    known = [_known(topic, there[_identity(topic)]) for topic in topics if _identity(topic) in there]
    if known and not skip_existing:
        # Before anything is added: a number that a row was given is gone even if the row is not kept.
        raise InputError(source, known)
    added = 0
    for topic in topics:
        if _identity(topic) in there:
            continue
        values = {
            "id": world.new_id(),
            "topic": topic.topic,
            "topic_key": topic.key,
            "site": topic.site,
            "language": topic.language,
            "keyword": topic.keyword,
            "audience": topic.audience,
            "min_words": topic.min_words,
            "priority": topic.priority,
            "source_urls": list(topic.sources),
        }
        article_id = session.connection().execute(_ADD, values).scalar()
        if article_id is not None:
            queue.add_job(session, article_id, Phase.RESEARCH, 1, limits)
            added += 1
    return Imported(added=added, existing=len(topics) - added)


def _identity(topic: Topic) -> tuple[str, str, str]:
    return (topic.site, topic.language, topic.key)


def _there(session: Session, topics: Sequence[Topic]) -> dict[tuple[str, str, str], int]:
    """The numbers of the articles that are there already."""
    values = {
        "sites": [topic.site for topic in topics],
        "languages": [topic.language for topic in topics],
        "keys": [topic.key for topic in topics],
    }
    rows = session.connection().execute(_THERE, values)
    return {(row.site, row.language, row.topic_key): row.number for row in rows}


def _known(topic: Topic, number: int) -> InputProblem:
    column = None if topic.line is None else "topic"
    return InputProblem(f"there already as article {number} ('{topic.topic}')", topic.line, column)
