"""From seconds of interleaved rounds to rates and ratios.

The machine's speed changes from minute to minute, so two systems are compared within one round only; the
figure is the median of the rounds' ratios.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

OURS, BARE = "nightdesk", "bare"
OPS = ("enqueue", "drain")

#: (system, backlog) → seconds of each op; one such mapping is one round.
Round = Mapping[tuple[str, int], Mapping[str, float]]


@dataclass(frozen=True, slots=True)
class Row:
    """One system at one op and backlog; the medians of all rounds."""

    system: str
    op: str
    backlog: int
    per_s: float  #: jobs per second
    ratio_to_bare: float


def rows(rounds: Sequence[Round], jobs: int) -> list[Row]:
    """A row for each system, op and backlog, in the order in which they were measured."""
    return [
        Row(
            system,
            op,
            backlog,
            round(median(jobs / one[system, backlog][op] for one in rounds), 1),
            round(_ratio(rounds, op, (BARE, backlog), (system, backlog)), 3),
        )
        for op in OPS
        for system, backlog in rounds[0]
    ]


def summary(rounds: Sequence[Round], op: str = "drain") -> dict[str, float | None]:
    """The worst of all backlogs. `slowdown_200k`: what the largest backlog costs over the smallest one.

    A figure is None if what it compares with was not measured.
    """
    backlogs = sorted({backlog for _, backlog in rounds[0]})
    over_bare = min(_ratio(rounds, op, (BARE, backlog), (OURS, backlog)) for backlog in backlogs)
    slowdown = _ratio(rounds, op, (OURS, backlogs[-1]), (OURS, backlogs[0])) if len(backlogs) > 1 else None
    over_peers = [over for backlog in backlogs if (over := _over_best_peer(rounds, op, backlog)) is not None]
    return {
        "ours_over_best_peer": round(min(over_peers), 3) if over_peers else None,
        "ours_over_bare": round(over_bare, 3),
        "slowdown_200k": round(slowdown, 3) if slowdown is not None else None,
    }


def _over_best_peer(rounds: Sequence[Round], op: str, backlog: int) -> float | None:
    """Against whichever peer was the fastest of its round."""
    peers = [system for system, size in rounds[0] if size == backlog and system not in (OURS, BARE)]
    if not peers:
        return None
    return median(min(one[peer, backlog][op] for peer in peers) / one[OURS, backlog][op] for one in rounds)


def _ratio(rounds: Sequence[Round], op: str, than: tuple[str, int], this: tuple[str, int]) -> float:
    """How many times as fast `this` is as `than`."""
    return median(one[than][op] / one[this][op] for one in rounds)
