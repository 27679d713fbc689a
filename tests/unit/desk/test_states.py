"""States, their table and their drawing say the same."""

from __future__ import annotations

from pathlib import Path

import regex

from nightdesk.states import TRANSITIONS, JobState, Phase

DRAWING = (Path(__file__).parents[3] / "docs" / "states.md").read_text(encoding="utf-8")


def test_the_drawn_arrows_are_exactly_the_transitions() -> None:
    drawn = set(regex.findall(r"^\s*(\w+) --> (\w+)", DRAWING, regex.MULTILINE))
    known = {(state.value, to.value) for state, targets in TRANSITIONS.items() for to in targets}
    assert drawn == known


def test_every_state_has_a_sentence_in_the_docs() -> None:
    for state in JobState:
        assert regex.search(rf"^\| `{state.value}` \| .{{10,}} \|$", DRAWING, regex.MULTILINE), state


def test_from_every_state_that_is_not_final_there_is_a_way_on() -> None:
    assert set(TRANSITIONS) == set(JobState)
    for state, targets in TRANSITIONS.items():
        assert targets or state in (JobState.DONE, JobState.CANCELLED)


def test_the_phases_follow_each_other_to_the_end() -> None:
    phase, seen = Phase.RESEARCH, [Phase.RESEARCH]
    while (following := phase.following) is not None:
        phase = following
        seen.append(phase)
    assert seen == list(Phase)
