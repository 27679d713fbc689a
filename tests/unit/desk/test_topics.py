"""Bad topic files: each problem is named with line and column, and nothing is half imported."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nightdesk.desk.topics import COLUMNS, Topic, parse_topic, read_topics
from nightdesk.errors import InputError, InputProblem

HEADER = "topic,keyword,site,language,priority,audience,min_words,sources\n"
GOOD = "Compost for beginners,compost,garden,en,3,,300,http://a.example/x\n"
SITES = ["garden", "kitchen"]


def read(tmp_path: Path, content: str | bytes) -> list[Topic]:
    path = tmp_path / "topics.csv"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return read_topics(path, SITES)


def problems(tmp_path: Path, content: str | bytes) -> str:
    with pytest.raises(InputError) as caught:
        read(tmp_path, content)
    return str(caught.value)


def test_a_good_file_is_read_whole(tmp_path: Path) -> None:
    (topic,) = read(tmp_path, "\ufeff" + HEADER + GOOD + "\n")
    assert topic == Topic(
        "Compost for beginners", "compost", "garden", "en", 3, "", 300, ("http://a.example/x",), line=2
    )


def test_only_topic_keyword_and_site_are_required(tmp_path: Path) -> None:
    (topic,) = read(tmp_path, "site,keyword,topic\ngarden,compost,Compost\n")
    assert (topic.language, topic.min_words, topic.sources) == ("en", 300, ())


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ("Compost,,garden,en,3,,300,", "line 3, column 'keyword': is empty"),
        (",compost,garden,en,3,,300,", "line 3, column 'topic': is empty"),
        ("Compost,compost,cellar,en,3,,300,", "line 3, column 'site': unknown site 'cellar'"),
        ("Compost,compost,,en,3,,300,", "line 3, column 'site': is empty"),
        ("Compost,compost,garden,xx,3,,300,", "line 3, column 'language': language 'xx'"),
        (f"{'x' * 5000},compost,garden,en,3,,300,", "line 3, column 'topic': 5000 characters, at most 200"),
        ("Grow 🍅 tomatoes,tomato,garden,en,3,,300,", "line 3, column 'topic': the emoji '🍅'"),
        ("Tomatoes,🍅,garden,en,3,,300,", "line 3, column 'keyword': the emoji '🍅'"),
        ("Flags,flag 🇷🇸,garden,en,3,,300,", "line 3, column 'keyword': the emoji"),
        ("Compost,!!!,garden,en,3,,300,", "line 3, column 'keyword': has no word"),
        ("Compost,compost,garden,en,high,,300,", "line 3, column 'priority': 'high'"),
        ("Compost,compost,garden,en,-1,,300,", "line 3, column 'priority': '-1'"),
        ("Compost,compost,garden,en,٣,,300,", "line 3, column 'priority'"),
        ("Compost,compost,garden,en,3,,1e3,", "line 3, column 'min_words': '1e3'"),
        ("Compost,compost,garden,en,3,,300,ftp://x", "line 3, column 'sources': 'ftp://x'"),
        ("Compost,compost,garden,en,3,,300,javascript:alert(1)", "line 3, column 'sources'"),
        ("COMPOST for  beginners!,compost,garden,en,3,,300,", "line 3, column 'topic': the same topic as in line 2"),
        ("Compost, with comma,compost,garden,en,3,,300,", "line 3, column 'sources': 9 cells for 8 columns"),
        ("Compost,compost", "line 3, column 'site': 2 cells for 8 columns"),
        ('"a\nb",compost,garden,en,3,,300,', "line 3, column 'topic': a control character or line break"),
        ("Com\u202epost,compost,garden,en,3,,300,", "line 3, column 'topic': an invisible character that turns the text's direction (U+202E)"),
        ("Compost,com\u2066post,garden,en,3,,300,", "line 3, column 'keyword': an invisible character"),
        ("Compost,compost,garden,en,3,a\u2069b,300,", "line 3, column 'audience': an invisible character"),
        ("Compost,compost,garden,en,3,,300,http://a/\u202ax", "line 3, column 'sources': an invisible character"),
    ],
)  # fmt: skip
def test_a_bad_row_is_named_with_line_and_column(tmp_path: Path, row: str, expected: str) -> None:
    assert expected in problems(tmp_path, HEADER + GOOD + row + "\n")


def test_every_problem_of_a_file_is_listed_at_once(tmp_path: Path) -> None:
    said = problems(tmp_path, HEADER + "a,,garden,en,3,,300,\n" + GOOD + "b,b,nowhere,en,99,,300,\n")
    assert "line 2, column 'keyword'" in said
    assert "line 4, column 'site'" in said
    assert "line 4, column 'priority'" in said


@pytest.mark.parametrize(("mark", "called"), [(";", "semicolons"), ("\t", "tabs")])
def test_other_separators_than_commas_are_named(tmp_path: Path, mark: str, called: str) -> None:
    said = problems(tmp_path, (HEADER + GOOD).replace(",", mark))
    assert f"line 1: the columns are separated by {called}: save the file as CSV with commas" in said


@pytest.mark.parametrize("header", ["title,keyword,site\n", "\n", "topic,keyword\n"])
def test_a_wrong_header_is_named(tmp_path: Path, header: str) -> None:
    assert "line 1, column" in problems(tmp_path, header + GOOD)


def test_a_file_that_is_not_utf8_is_named_with_the_place(tmp_path: Path) -> None:
    said = problems(tmp_path, HEADER.encode() + GOOD.encode() + "Башта,башта,garden\n".encode("cp1251"))
    assert "line 3, column 'topic': not UTF-8" in said
    assert "not UTF-8" in problems(tmp_path, (HEADER + GOOD).encode("utf-16"))


def test_a_file_without_topics_and_a_missing_file_are_named(tmp_path: Path) -> None:
    assert "no topics" in problems(tmp_path, HEADER)
    for empty in ("", "\ufeff", " \n\n"):
        assert "the file is empty: its columns are topic, keyword, site" in problems(tmp_path, empty)
    with pytest.raises(InputError, match="No such file"):
        read_topics(tmp_path / "none.csv", SITES)


def test_a_quoted_cell_over_several_lines_does_not_shift_the_line_numbers(tmp_path: Path) -> None:
    said = problems(tmp_path, HEADER + 'Compost,compost,garden,en,3,"a\n\nb",300,\nb,,garden,en,3,,300,\n')
    assert "line 2, column 'audience': a control character" in said
    assert "line 5, column 'keyword': is empty" in said


def test_scripts_and_joiners_of_our_languages_are_no_emoji_and_no_control_characters(tmp_path: Path) -> None:
    rows = "Башта на тераси,башта,garden,sr-Cyrl,3,,300,\nహైదరాబాద్\u200cలో తోట,తోట,garden,te,3,,300,\n"
    assert len(read(tmp_path, HEADER + rows)) == 2


def test_bytes_of_the_command_line_that_are_no_text_are_named_for_what_they_are() -> None:
    cells = {"topic": os.fsdecode(b"caf\xe9"), "keyword": "coffee", "site": "garden"}
    found: list[InputProblem] = []
    assert parse_topic(cells, SITES, found) is None
    assert [problem.column for problem in found] == ["topic"]
    assert "not text in this terminal's encoding" in found[0].message


@given(st.binary(max_size=400))
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_bytes_are_either_topics_or_one_clear_error(tmp_path: Path, raw: bytes) -> None:
    for content in (raw, HEADER.encode() + raw):
        try:
            assert read(tmp_path, content)
        except InputError as error:
            assert str(error)


@given(st.dictionaries(st.sampled_from(COLUMNS), st.text(max_size=40), min_size=3))
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_cells_are_either_a_topic_or_one_clear_error(tmp_path: Path, cells: dict[str, str]) -> None:
    import csv
    import io

    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(cells)
    writer.writerow(cells.values())
    try:
        (topic,) = read(tmp_path, out.getvalue().encode("utf-8", "surrogatepass"))
        assert topic.site in SITES
        assert topic.key
    except InputError as error:
        assert str(error)
