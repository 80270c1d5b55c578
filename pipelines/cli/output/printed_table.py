"""Tables for people. No line is wider than the terminal; in a pipe nothing is shortened.

Where a table is too wide, it gives way in this order, until it fits:

1. Optional columns are left out, from the right: a path where anything else would be shortened, a number only where
   names would keep less than 24 columns of the terminal. A line says which columns are missing.
2. The widest names are shortened in the middle, down to 12 columns, and sentences are wrapped. Numbers stay whole.
3. Each record becomes a block with a line for each field.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from rich.cells import cell_len
from rich.text import Text

from pipelines.cli.output import terminal
from pipelines.cli.output.log_lines import printable
from resources import quantities

PrintedResult = Mapping[str, Any]
"""The fields of a result that `--json` prints. The tables show some of them."""
PrintedResults = Sequence[PrintedResult]

UNKNOWN = "?"
_GAP = "  "
_READABLE = 24
_SHORTEST = 12


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Column:
    """A column: its heading, its cells, the width of the widest, and whether it has numbers and may be left out."""

    heading: str
    cells: Sequence[Text]
    width: int
    is_number: bool
    is_optional: bool

    @classmethod
    def of(cls, described: str, records: Iterable[PrintedResult], unknown: str) -> Self:
        """The column that a word describes; see `print_table`."""
        word = described.removeprefix("?")
        name, _, heading = word.removeprefix(">").partition(":")
        heading = (heading or name).upper().replace("_", " ")
        cells = [_cell(name, record, unknown) for record in records]
        return cls(
            heading=heading,
            cells=cells,
            width=max([cell_len(heading), *(cell.cell_len for cell in cells)]),
            is_number=word.startswith(">"),
            is_optional=described.startswith("?"),
        )

    def width_at_most(self, limit: int) -> int:
        """The width if names and sentences take `limit` columns of the terminal. Headings and numbers stay whole."""
        return self.width if self.is_number else min(self.width, max(limit, cell_len(self.heading)))

    def lines(self, row: int, width: int) -> list[Text]:
        """The lines of a cell in this width: a sentence is wrapped, a single word is shortened in the middle."""
        cell = self.cells[row].copy()
        if cell.cell_len <= width:
            return [cell]
        if " " in cell.plain:
            return list(cell.wrap(terminal.out, width))
        return [Text(terminal.shortened(cell.plain, width), cell.style)]

    def aligned(self, line: Text, width: int) -> Text:
        """A line of a cell with the spaces around it."""
        line.rstrip()
        spaces = " " * (width - line.cell_len)
        return Text.assemble(spaces, line) if self.is_number else Text.assemble(line, spaces)


def print_table(columns: str, records: Iterable[PrintedResult], *, unknown: str = UNKNOWN) -> None:
    """Print a table.

    Args:
        columns: names of fields, separated by spaces. `>` before a name marks numbers, which are aligned right, and `?`
            before that a column that may be left out. The heading is the name in capitals, or what follows a colon.
            The name also has the unit of numbers: see `as_text`.
        records: one for each row. The field `style` is the style of its row.
        unknown: what is shown for None.
    """
    rows, room = list(records), terminal.width()
    all_columns = [_Column.of(described, rows, unknown) for described in columns.split()]
    widths = {column: column.width for column in all_columns} if room is None else _fitted(all_columns, room)
    if room is not None and widths is None:
        _print_blocks(all_columns, len(rows), room)
        return
    assert widths is not None
    _print_row(widths, {column: [Text(column.heading, "bold")] for column in widths})
    for row in range(len(rows)):
        _print_row(widths, {column: column.lines(row, width) for column, width in widths.items()})
    left_out = ", ".join(column.heading for column in all_columns if column not in widths)
    if left_out and room is not None:
        terminal.print_line(Text(terminal.shortened(f"left out for lack of room: {left_out}", room), terminal.DIM))


def _fitted(columns: Sequence[_Column], room: int) -> dict[_Column, int] | None:
    """The columns that are shown, with their widths; None if the table cannot fit."""
    widest = max(column.width for column in columns)
    shown = list(columns)
    for column in reversed(columns):
        if column.is_optional and _total(shown, _READABLE if column.is_number else widest) > room:
            shown.remove(column)
    limits = range(widest, min(widest, _SHORTEST) - 1, -1)
    limit = next((limit for limit in limits if _total(shown, limit) <= room), None)
    return None if limit is None else {column: column.width_at_most(limit) for column in shown}


def _total(columns: Sequence[_Column], limit: int) -> int:
    """The width of a table of these columns."""
    return sum(column.width_at_most(limit) for column in columns) + len(_GAP) * (len(columns) - 1)


def _print_row(widths: Mapping[_Column, int], lines: Mapping[_Column, Sequence[Text]]) -> None:
    """Print the cells of a row beside each other. The row has as many lines as its longest cell."""
    for number in range(max(map(len, lines.values()))):
        cells = [
            column.aligned(lines[column][number] if number < len(lines[column]) else Text(), width)
            for column, width in widths.items()
        ]
        line = Text(_GAP).join(cells)
        line.rstrip()
        terminal.print_line(line)


def _print_blocks(columns: Sequence[_Column], rows: int, room: int) -> None:
    """Print each record as lines with a field each, and an empty line between records."""
    width = max(cell_len(column.heading) for column in columns)
    for row in range(rows):
        for column in columns:
            field = Text.assemble((column.heading.ljust(width), "bold"), _GAP, column.cells[row])
            for line in field.wrap(terminal.out, room):
                line.rstrip()
                terminal.print_line(line)
        if row < rows - 1:
            terminal.print_line(Text())


def _cell(name: str, record: PrintedResult, unknown: str) -> Text:
    """A field as text: numbers with separators and units, the length of a list, gaps with their causes."""
    value, style = record[name], record.get("style") or ""
    match value:
        case Text():
            return value
        case int() | float():
            text = quantities.as_text(name, value)
        case list() | tuple():
            text = quantities.count(len(value))
        case dict():
            text = ", ".join(f"{cause} {quantities.count(number)}" for cause, number in value.items()) or "-"
        case _:
            text = unknown if value is None else printable(str(value))
    return Text(text, style)
