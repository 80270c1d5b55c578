"""What the command line shows a person: tables on stdout, progress and errors on stderr, colours on terminals only."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.measure import Measurement
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table

from kafka_io.client.retention import FOREVER
from kafka_io.model import BrokerPartition
from pipelines.watching.durations import humane
from pipelines.watching.status import By, State

if TYPE_CHECKING:
    from pipelines.commands.checking import Finding
    from pipelines.loading.outcome import TopicLoad
    from pipelines.loading.verify import Proof
    from pipelines.mending.clean import Cleaning
    from pipelines.mending.compare import Comparison
    from pipelines.mending.deep import DeepProof
    from pipelines.mending.history import Past
    from pipelines.mending.replayed import TopicReplay
    from pipelines.mending.rewind import Rewind
    from pipelines.offsets.adopting import Adoption
    from pipelines.offsets.portable import Cursor
    from pipelines.watching.status import PartitionStatus, TopicStatus

_out = Console()
_err = Console(stderr=True)
_UNKNOWN = "?"
_COMPARED = (">EQUAL", ">DIFFERING", ">ONLY IN TABLE", ">ONLY ON BROKER", ">COPIES")
_STATES = {  # how each is drawn, in the order in which they are counted
    State.LOSING: "bold red",
    State.ERROR: "red",
    State.AT_RISK: "yellow",
    State.BEHIND: "cyan",
    State.NEW: "blue",
    State.GONE: "dim",
    State.LOADED: "green",
}
_SHOWN_OF_RUN = 8  # enough to tell runs apart; Dagster shows as many


def error(message: str) -> None:
    """One sentence that says what went wrong. Control characters in it are shown, not obeyed (X05)."""
    _err.print(f"[bold red]penstock:[/] {escape(printable(message))}", soft_wrap=True, highlight=False)


def warning(message: str) -> None:
    """One sentence that a person should know."""
    _err.print(f"[yellow]warning:[/] {escape(printable(message))}", soft_wrap=True, highlight=False)


def printable(text: str) -> str:
    """`text` with characters that would steer a terminal written as escapes (X05)."""
    return text if text.isprintable() else "".join(one if one.isprintable() else repr(one)[1:-1] for one in text)


def _table(*columns: str) -> Table:
    """Text columns on the left, then numbers; a name that begins with `>` is a number's."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column.removeprefix(">"), justify="right" if column.startswith(">") else "left", no_wrap=True)
    return table


def _print(table: Table) -> None:
    """Print a table as wide as it is: rich would cut the names short to fit 80 columns, in pipes too."""
    wide = Console(width=10_000)
    Console(width=Measurement.get(wide, wide.options, table).maximum).print(table)


def _number(value: int | None) -> str:
    return _UNKNOWN if value is None else f"{value:,}"


def topics(found: Sequence["TopicStatus"]) -> None:
    """A line per topic; what is wrong with one, on stderr."""
    table = _table("CLUSTER", "TOPIC", ">PARTITIONS", ">EARLIEST..LATEST", ">CURSOR", ">LAG", "TABLE")
    for one in found:
        parts = one.partitions
        held = sum((part.latest or 0) - (part.earliest or 0) for part in parts)
        loaded = [part.cursor for part in parts if part.cursor is not None]
        cursor = f"{sum(loaded):,}" if loaded else "-"
        table.add_row(
            one.cluster,
            escape(printable(one.topic)),
            str(len(parts)),
            f"{held:,} {_unit(parts)}",
            cursor,
            _number(one.lag),
            one.table,
        )
    if found:
        _print(table)
    else:
        _out.print("no topics")
    _troubles(found)


def _unit(parts: Sequence["PartitionStatus"]) -> str:
    """What offsets count: bytes in 0.7, whose partitions belong to brokers, records later."""
    return "bytes" if any(part.id.broker is not None for part in parts) else "records"


def _troubles(found: Sequence["TopicStatus"]) -> None:
    for one in found:
        for sentence in one.warnings:
            warning(f"{one.topic}: {sentence}")
        if one.error:
            error(f"{one.topic}: {one.error}")


def statuses(found: Sequence["TopicStatus"], now_ms: int) -> None:
    """A line per topic and one of totals; what is wrong with one, on stderr."""
    table = _table("CLUSTER", "TOPIC", "STATE", ">LAG", ">LATE", ">LEFT", ">LAST LOAD", ">VERSION")
    for one in found:
        state, loaded_ms = one.state(now_ms), one.loaded_at_ms
        lag, late, left = ("-",) * 3 if state is State.GONE else _race(one, now_ms)
        table.add_row(
            one.cluster,
            escape(printable(one.topic)),
            f"[{_STATES[state]}]{state}[/]",
            lag,
            late,
            left,
            "-" if loaded_ms is None else humane((now_ms - loaded_ms) / 1000),
            "-" if one.version is None else str(one.version),
        )
    _print(table)
    _out.print(_totals(found, now_ms), highlight=False)
    _troubles(found)


def _race(one: "TopicStatus", now_ms: int) -> tuple[str, str, str]:
    """Its lag, how late it is, and how long until something is lost."""
    if one.lag == 0:
        return "0", "-", "-"
    unit = " bytes" if one.lag and _unit(one.partitions) == "bytes" else ""
    late_s, left_s = one.late_s(now_ms), one.left_s(now_ms)
    late = _UNKNOWN if late_s is None else humane(late_s)
    if left_s is not None:
        left = f"{'~' if one.kept.by is By.ESTIMATE else ''}{humane(left_s)}"
    else:
        left = "never" if one.kept.ms == FOREVER else _UNKNOWN
    return f"{_number(one.lag)}{unit}", late, left


def _totals(found: Sequence["TopicStatus"], now_ms: int) -> str:
    states = Counter(one.state(now_ms) for one in found)
    told = [f"{states[state]} {state}" for state in _STATES if states[state]]
    lags: Counter[str] = Counter()
    for one in found:
        lags[_unit(one.partitions)] += one.lag or 0
    told += [f"lag {lag:,} {unit}" for unit, lag in sorted(lags.items()) if lag]
    return ", ".join([f"{len(found)} topic{'' if len(found) == 1 else 's'}", *told])


def loads(done: Sequence["TopicLoad"]) -> None:
    """A line per topic; its error, if it has one, on stderr."""
    table = _table("TOPIC", ">VERSION", ">ROWS", ">BYTES", ">FILES", ">SECONDS", "TABLE")
    for one in done:
        numbers = (_number(one.version), _number(one.rows), _number(one.bytes), _number(one.files))
        table.add_row(escape(printable(one.topic)), *numbers, f"{one.seconds:.1f}", one.table)
    _print(table)
    for one in done:
        for sentence in one.warnings:
            warning(f"{one.topic}: {sentence}")
        if one.error:
            error(f"{one.topic}: {one.error}")


def _gaps(gaps: Mapping[str, int]) -> str:
    return ", ".join(f"{cause} {count:,}" for cause, count in gaps.items()) or "-"


def proofs(found: Sequence["Proof"]) -> None:
    """A line per partition, then what was not proven."""
    table = _table("TOPIC", "PARTITION", ">START", ">END", ">ROWS", ">MISSING", ">DUPLICATES", "GAPS")
    for proof in found:
        for one in proof.partitions:
            numbers = map(_number, (one.start, one.end, one.rows, one.missing, one.duplicates))
            table.add_row(
                escape(printable(proof.topic)),
                str(BrokerPartition(one.broker, one.partition)),
                *numbers,
                _gaps(one.gaps),
            )
    _print(table)
    for proof in found:
        for problem in proof.problems:
            error(f"{proof.topic}: {problem}")
        if proof.proven:
            rows = sum(one.rows for one in proof.partitions)
            _out.print(f"[green]proven[/] {escape(printable(proof.topic))}: {rows:,} rows, each once", highlight=False)


def comparisons(found: Sequence["DeepProof"]) -> None:
    """A line per partition that was compared with its broker."""
    table = _table("TOPIC", "PARTITION", ">FROM", ">TO", *_COMPARED, ">NOT COMPARED")
    for proof in found:
        for one in proof.compared:
            name = escape(printable(proof.topic))
            table.add_row(
                name, str(one.id), *map(_number, (one.start, one.end)), *_compared(one.found), _number(one.not_compared)
            )
    if found:
        _print(table)


def replays(done: Sequence["TopicReplay"]) -> None:
    """A line per interval that was fetched again, then what became of it."""
    table = _table("TOPIC", "PARTITION", ">FROM", ">TO", ">ROWS", *_COMPARED, "GAPS")
    for replay in done:
        for one in replay.partitions:
            place = (escape(printable(replay.topic)), str(one.interval.id))
            numbers = map(_number, (one.interval.start, one.interval.stop, one.rows))
            table.add_row(*place, *numbers, *_compared(one.found), _gaps(one.gaps))
    _print(table)
    for replay in done:
        name = escape(printable(replay.topic))
        if replay.error:
            error(f"{replay.topic}: {replay.error}")
        elif replay.changed:
            _out.print(f"[green]replaced[/] {name}: {replay.rows:,} rows, version {replay.version}", highlight=False)
        elif replay.partitions:
            _out.print(f"[green]unchanged[/] {name}: {replay.rows:,} rows are what the brokers have", highlight=False)
        else:
            _out.print(f"[green]unchanged[/] {name}: the table covers nothing there", highlight=False)


def _compared(found: "Comparison") -> tuple[str, ...]:
    return (_number(found.equal), *(_number(kind.count) for kind in found.unlike.values()))


def history(past: Sequence["Past"]) -> None:
    """A line per commit, the newest first."""
    table = _table("VERSION", "TIME (UTC)", "WHAT", "RUN", ">ROWS", ">BYTES", ">FILES", ">RANGES", "GAPS", "NOTES")
    for one in past:
        numbers = map(_number, (one.rows, one.bytes, one.files, len(one.ranges))) if one.entry else [""] * 4
        table.add_row(
            str(one.logged.version),
            f"{one.logged.time:%Y-%m-%d %H:%M:%S}",
            escape(printable(one.what)),
            escape(printable(one.entry.run[:_SHOWN_OF_RUN])) if one.entry else "",
            *numbers,
            _gaps(one.gaps),
            escape(printable("; ".join(one.notes))),
            style="dim" if one.undone_by is not None else None,
        )
    _print(table)


def rewound(planned: "Rewind", version: int) -> None:
    """A line per partition, then what was done."""
    table = _table("PARTITION", ">CURSOR WAS", ">IS NOW")
    for id_, before, after in planned.cursors:
        table.add_row(str(id_), *("-" if cursor is None else _number(cursor) for cursor in (before, after)))
    _print(table)
    topic = escape(printable(planned.change.back.topic.name))
    _out.print(f"version {version}: {topic} went back {planned}", soft_wrap=True, highlight=False)


def cursors(found: Sequence["Cursor"]) -> None:
    """A line per partition."""
    table = _table("CLUSTER", "TOPIC", "PARTITION", ">OFFSET")
    for one in found:
        table.add_row(one.cluster, escape(printable(one.topic)), str(one.id), _number(one.offset))
    _print(table)


def adoptions(planned: Sequence["Adoption"]) -> None:
    """A line per partition: what the source says, beside what the broker holds."""
    table = _table("TOPIC", "PARTITION", ">ADOPTED", ">BEGINS AT", ">LOG BEGINS", ">LOG ENDS", ">TO LOAD")
    for topic, one in ((each.topic, one) for each in planned for one in each.partitions):
        adopted = "-" if one.adopted is None else _number(one.adopted)
        numbers = map(_number, (one.start, one.earliest, one.latest, one.left))
        table.add_row(escape(printable(topic)), str(one.id), adopted, *numbers)
    _print(table)


def cleanings(done: Sequence[tuple[str, "Cleaning"]], *, deleted: bool) -> None:
    """A line per topic."""
    table = _table("TOPIC", ">COLLECTED" if deleted else ">TO COLLECT", ">BYTES", ">MERGED", ">INTO", "TABLE")
    for topic, one in done:
        numbers = map(_number, (len(one.collected), one.bytes, one.merged, one.larger))
        table.add_row(escape(printable(topic)), *numbers, one.table)
    _print(table)
    for topic, one in done:
        if one.busy:
            warning(f"{topic}: another writer was first; small files are merged the next time")
    if not deleted and any(one.collected for _, one in done):
        _out.print("nothing was changed; --delete does it")


def finding(one: "Finding") -> None:
    """One line."""
    mark = "[green]ok    [/]" if one.ok else "[bold red]failed[/]"
    _out.print(f"{mark} {escape(printable(f'{one.what}: {one.told}'))}", soft_wrap=True, highlight=False)


@contextmanager
def progress() -> Iterator[Callable[[str], Callable[[int, int], None]]]:
    """A bar per topic on stderr while a load runs, on a terminal only. Gives what a Loader calls `on_progress`."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left:"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=_err, transient=True, disable=not _err.is_terminal) as bars:

        def begin(topic: str) -> Callable[[int, int], None]:
            bar = bars.add_task(escape(printable(topic)), total=None)
            return lambda done, total: bars.update(bar, completed=done, total=total)

        yield begin
