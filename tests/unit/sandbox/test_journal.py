"""The journal survives crashes and adds up."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

from nightdesk.errors import InputError
from nightdesk.sandbox import JournalEntry, billed_usd, read_journal
from nightdesk.sandbox.journal import JournalWriter

ENTRY = JournalEntry(
    seq=1,
    at="2026-11-30T00:00:00+00:00",
    provider="anthropic",
    model="claude-sonnet-5-5",
    path="/v1/messages",
    client_request_id="c-1",
    request_id="req-1",
    status=200,
    fault=None,
    phase="Brief",
    usage={"input_tokens": 3},
    billed_usd=Decimal("0.0000001"),
    request={"text": "తెలుగు \ud83d \x00"},
    response=None,
)


def test_entries_come_back_as_they_were_written(tmp_path: Path) -> None:
    writer = JournalWriter(tmp_path / "deep" / "journal.jsonl")
    second = replace(ENTRY, seq=2, billed_usd=Decimal("1.10"))
    writer.append(ENTRY)
    writer.append(second)
    writer.close()
    entries = read_journal(writer.path)
    assert entries == [ENTRY, second]
    assert billed_usd(entries) == Decimal("1.1000001")


def test_a_torn_last_line_is_left_out_and_removed_by_the_next_writer(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    writer = JournalWriter(path)
    writer.append(ENTRY)
    writer.close()
    with path.open("ab") as file:
        file.write(b'{"seq": 2, "at": "20')
    assert read_journal(path) == [ENTRY]
    again = JournalWriter(path)
    assert again.entries == 1
    again.append(replace(ENTRY, seq=2))
    again.close()
    assert [entry.seq for entry in read_journal(path)] == [1, 2]


def test_every_cut_of_a_journal_can_be_read(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    writer = JournalWriter(path)
    for seq in (1, 2):
        writer.append(replace(ENTRY, seq=seq))
    writer.close()
    content = path.read_bytes()
    for length in range(0, len(content), 7):
        path.write_bytes(content[:length])
        assert len(read_journal(path)) == content[:length].count(b"\n")


def test_no_file_means_no_entries(tmp_path: Path) -> None:
    assert read_journal(tmp_path / "none.jsonl") == []
    assert billed_usd([]) == 0


def test_a_damaged_line_in_the_middle_is_reported_with_its_number(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    writer = JournalWriter(path)
    writer.append(ENTRY)
    writer.close()
    path.write_bytes(path.read_bytes() + b"{}\n" + path.read_bytes())
    with pytest.raises(InputError, match="line 2"):
        read_journal(path)
