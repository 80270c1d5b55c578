"""A table fits its terminal: names are shortened, sentences wrapped, numbers never changed. A pipe gets all of it."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.text import Text

from pipelines.cli.output import terminal
from pipelines.cli.output.printed_table import print_table

LONG = "com.example.analytics.clickstream.enriched.sessions.v2.production"
COLUMNS = "cluster topic ?>version >lag ?table"
RECORDS: list[dict[str, Any]] = [
    {"cluster": "main", "topic": "clicks", "version": "1", "lag": 1_234_567, "table": "/lake/main/clicks"},
    {"cluster": "main", "topic": LONG, "version": "12", "lag": None, "table": f"/lake/main/{LONG}"},
]
Lines = Callable[..., list[str]]

_names = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1, max_size=90)
_sentences = st.lists(_names, min_size=1, max_size=6).map(" ".join)
_records = st.lists(
    st.fixed_dictionaries(
        {
            "topic": _names | st.just(LONG),
            "rows": st.integers(-(10**9), 10**12),
            "late_s": st.floats(0, 1e7),
            "bytes": st.integers(0, 10**15),
            "notes": _sentences,
            "table": _names,
            "gaps": st.dictionaries(st.sampled_from(["compacted", "expired"]), st.integers(1, 10**6)),
        }
    ),
    max_size=3,
)


def printed(
    records: list[dict[str, Any]], columns: str = COLUMNS, *, room: int | None, unknown: str = "?"
) -> list[str]:
    """The lines of a table on a terminal with so many columns; in a pipe if there is no number."""
    patched = pytest.MonkeyPatch()
    try:
        patched.setattr(terminal, "width", lambda: room)
        with terminal.out.capture() as capture:
            print_table(columns, records, unknown=unknown)
    finally:
        patched.undo()
    return capture.get().splitlines()


def test_a_pipe_gets_everything_without_spaces_at_the_end() -> None:
    assert printed(RECORDS, room=None) == [
        f"CLUSTER  TOPIC{' ' * 60}  VERSION        LAG  TABLE",
        f"main     clicks{' ' * 59}        1  1,234,567  /lake/main/clicks",
        f"main     {LONG}       12          ?  /lake/main/{LONG}",
    ]


def test_a_path_that_does_not_fit_is_left_out_before_a_name_is_shortened() -> None:
    assert printed(RECORDS, room=120) == [
        f"CLUSTER  TOPIC{' ' * 60}  VERSION        LAG",
        f"main     clicks{' ' * 59}        1  1,234,567",
        f"main     {LONG}       12          ?",
        "left out for lack of room: TABLE",
    ]


def test_a_name_is_shortened_in_the_middle_down_to_24_columns_before_numbers_are_left_out() -> None:
    assert printed(RECORDS, room=60) == [
        "CLUSTER  TOPIC                            VERSION        LAG",
        "main     clicks                                 1  1,234,567",
        "main     com.example.ana\u2026s.v2.production       12          ?",
        "left out for lack of room: TABLE",
    ]
    assert printed(RECORDS, room=44) == [
        "CLUSTER  TOPIC                           LAG",
        "main     clicks                    1,234,567",
        "main     com.example.\u2026.production          ?",
        "left out for lack of room: VERSION, TABLE",
    ]


def test_a_sentence_is_wrapped_between_words() -> None:
    record = {"version": "3", "rows": 5, "notes": "cancelled by version 4; from 0@127.0.0.1:9092; by 0.6.0"}
    assert printed([record], "version >rows notes", room=40) == [
        "VERSION  ROWS  NOTES",
        "3           5  cancelled by version 4;",
        "               from 0@127.0.0.1:9092; by",
        "               0.6.0",
    ]


def test_without_room_for_a_table_each_record_is_a_block() -> None:
    assert printed(RECORDS[:1], room=24) == [
        "CLUSTER  main",
        "TOPIC    clicks",
        "VERSION  1",
        "LAG      1,234,567",
        "TABLE",
        "/lake/main/clicks",
    ]
    assert printed(RECORDS, room=24)[6] == ""


@pytest.mark.parametrize(("room", "is_table"), [(35, True), (34, False)])
def test_a_number_is_never_shortened(room: int, is_table: bool) -> None:
    lines = printed([{"topic": LONG, "rows": 10**15}], "topic >rows", room=room)
    assert any("1,000,000,000,000,000" in line for line in lines)
    assert lines[0].startswith("TOPIC  ") is is_table


@settings(max_examples=40, deadline=None)
@given(records=_records, room=st.integers(20, 140))
def test_no_line_is_wider_than_the_terminal_and_every_number_is_whole(records: list[dict[str, Any]], room: int) -> None:
    columns = "topic >rows >late_s:LATE ?>bytes gaps notes ?table"
    lines = printed(records, columns, room=room)
    assert max(map(cell_len, lines), default=0) <= room
    words = " ".join(lines).split()
    for record in records:
        number = f"{record['rows']:,}"
        assert number in words or len(number) + len("TOPIC  ") > room


@settings(max_examples=40, deadline=None)
@given(records=_records)
def test_in_a_pipe_every_value_is_whole(records: list[dict[str, Any]]) -> None:
    lines = printed(records, "topic >rows notes ?table", room=None)
    assert len(lines) == len(records) + 1
    for record, line in zip(records, lines[1:], strict=True):
        assert line.startswith(record["topic"])
        assert line.endswith(record["table"])
        assert record["notes"] in line


@given(text=_names, columns=st.integers(0, 100))
def test_a_shortened_text_keeps_both_ends_and_fits(text: str, columns: int) -> None:
    short = terminal.shortened(text, columns)
    assert cell_len(short) <= columns or short == text
    assert short == text or columns < 1 or "\u2026" in short
    head, _, tail = short.partition("\u2026")
    with suppress(IndexError):
        assert text.startswith(head)
        assert text.endswith(tail)


def test_control_characters_do_not_reach_the_terminal() -> None:  # fault X05
    [_, line] = printed([{"topic": "a\x1b[31m\nb"}], "topic", room=None)
    assert line == "a\\x1b[31m\\nb"


def test_a_cell_keeps_its_style_when_it_is_shortened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal, "width", lambda: 14)
    shown: list[Text] = []
    monkeypatch.setattr(terminal, "print_line", shown.append)
    print_table("topic", [{"topic": Text(LONG, terminal.BAD)}])
    assert (shown[1].plain, [str(span.style) for span in shown[1].spans]) == ("com.exa\u2026uction", [terminal.BAD])
