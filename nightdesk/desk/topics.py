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
MAX_CHARS = {"topic": 200, "keyword": 80, "audience": 300}
MAX_SOURCES = 20
MAX_URL_CHARS = 2_000
_PICTOGRAPH = regex.compile(r"[\p{Extended_Pictographic}\U0001F1E6-\U0001F1FF--[#*0-9©®™]]", regex.V1)
_WORD = regex.compile(r"\p{L}[\p{L}\p{M}\p{N}]*")
Wrong = Callable[[str, str], None]  #: takes a column's name and what is wrong with it
_CONTROL = regex.compile(r"[\p{Cc}\p{Cs}--[\t]]", regex.V1)


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
    problems = [
        InputProblem(f"unknown column; the columns are {', '.join(COLUMNS)}", 1, name or "(empty)")
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
        if column == "audience" and _CONTROL.search(row.get(column, "")):
            wrong(column, "a control character")
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
    elif _CONTROL.search(value):
        wrong(column, "a control character or line break")
    elif not _WORD.search(value):
        wrong(column, "has no word in it")


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

_NUMBER = text("""
    SELECT number FROM nightdesk.articles
    WHERE site = :site AND language = :language AND topic_key = :topic_key
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
    problems, existing = [], 0
    # One import at a time: two that hold the same topics in another order would deadlock.
    session.connection().execute(_ONE_AT_A_TIME)
    for topic in topics:
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
            continue
        existing += 1
        if not skip_existing:
            number = session.connection().execute(_NUMBER, values).scalar_one()
            message = f"there already as article {number} ('{topic.topic}')"
            problems.append(InputProblem(message, topic.line, "topic"))
    if problems:
        raise InputError(source, problems)
    return Imported(added=len(topics) - existing, existing=existing)
