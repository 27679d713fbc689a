"""The note of ports, in which a person may have had a hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nightdesk.site_server import remember_port, remembered_port

PLAIN = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
ANYTHING = st.recursive(PLAIN, lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=5), inner))


def test_a_port_is_remembered_until_another_is_preferred(tmp_path: Path) -> None:
    remember_port(tmp_path, "sites", 4711, 0)
    remember_port(tmp_path, "sandbox", 4712, 0)
    assert remembered_port(tmp_path, "sites", 0) == 4711
    remember_port(tmp_path, "sites", 4711, 8472)
    assert remembered_port(tmp_path, "sites", 0) == 0


@pytest.mark.parametrize(
    "note",
    [
        "{",
        "\x00",
        "[" * 100_000,
        '{"sites": {"port": 70000, "preferred": 0}}',
        '{"sites": {"port": "4711", "preferred": 0}}',
    ],
)
def test_a_note_that_makes_no_sense_is_made_anew(tmp_path: Path, note: str) -> None:
    (tmp_path / "ports.json").write_text(note, encoding="utf-8")
    assert remembered_port(tmp_path, "sites", 0) == 0
    remember_port(tmp_path, "sites", 4711, 0)
    assert json.loads((tmp_path / "ports.json").read_text("utf-8")) == {
        "sites": {"port": 4711, "preferred": 0}
    }


@given(
    ANYTHING
    | st.dictionaries(st.just("sites"), st.fixed_dictionaries({"port": PLAIN, "preferred": st.just(0)}))
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_the_note_holds_the_answer_is_a_port(tmp_path: Path, note: object) -> None:
    (tmp_path / "ports.json").write_text(json.dumps(note), encoding="utf-8")
    assert 0 <= remembered_port(tmp_path, "sites", 0) <= 65_535
