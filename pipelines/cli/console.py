"""The output for people: tables on stdout, progress and errors on stderr, colours on terminals only."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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

from kafka_io.cluster.retention import FOREVER
from pipelines.status.status import RetentionSource, TopicState

if TYPE_CHECKING:
    from kafka_io.registry.listing import SkippedNode
    from pipelines.cli.config_check import CheckResult
    from pipelines.cursors.export import ExportedCursor
    from pipelines.cursors.import_offsets import OffsetsImport
    from pipelines.loading.outcome import TopicLoad
    from pipelines.loading.verify import Proof
    from pipelines.maintenance.clean import CleanResult
    from pipelines.maintenance.compare import Comparison
    from pipelines.maintenance.deep_verify import DeepProof
    from pipelines.maintenance.history import HistoryEntry
    from pipelines.maintenance.replay_result import TopicReplay
    from pipelines.maintenance.rewind import Rewind
    from pipelines.status.status import PartitionStatus, TopicStatus

_out = Console()
_err = Console(stderr=True)
_UNKNOWN = "?"
_TIME_UNITS = (("d", 86_400), ("h", 3600), ("m", 60), ("s", 1))
_COMPARED = (">EQUAL", ">DIFFERING", ">ONLY IN TABLE", ">ONLY ON BROKER", ">COPIES")
_STATES = {  # the style of each state, in the order of the totals
    TopicState.LOSING: "bold red",
    TopicState.ERROR: "red",
    TopicState.AT_RISK: "yellow",
    TopicState.BEHIND: "cyan",
    TopicState.NEW: "blue",
    TopicState.GONE: "dim",
    TopicState.LOADED: "green",
}
_RUN_ID_LENGTH = 8  # enough to distinguish runs; Dagster shows as many


def error(message: str) -> None:
    """Print a sentence about an error. Control characters are escaped (fault X05)."""
    _err.print(f"[bold red]penstock:[/] {_safe(message)}", soft_wrap=True, highlight=False)


def warning(message: str) -> None:
    """Print a warning. Control characters are escaped (fault X05)."""
    _err.print(f"[yellow]warning:[/] {_safe(message)}", soft_wrap=True, highlight=False)


def skipped_topics(nodes: "Iterable[SkippedNode]") -> None:
    """Warn about each topic whose entry in the registry cannot be read."""
    for node in nodes:
        warning(f"skipped {node.path}: {node.reason}")


def printable(text: str) -> str:
    """`text` with escapes instead of the characters that would control a terminal (fault X05)."""
    return text if text.isprintable() else "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


def duration(seconds: float) -> str:
    """The two largest units, rounded down: `4 d 3 h`, `3 m 20 s`, `0 s`. A negative duration begins with a minus."""
    left = int(abs(seconds))
    parts: list[tuple[int, str]] = []
    for unit, size in _TIME_UNITS:
        count, left = divmod(left, size)
        if count or parts:
            parts.append((count, unit))
    text = " ".join(f"{count} {unit}" for count, unit in parts[:2] if count) or "0 s"
    return f"-{text}" if seconds <= -1 else text


def _safe(text: str) -> str:
    """Text from outside, such as a topic name: neither the terminal nor rich interprets it."""
    return escape(printable(text))


def _table(*columns: str) -> Table:
    """An empty table. Columns are aligned left; those whose name begins with `>` hold numbers and are aligned right."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column.removeprefix(">"), justify="right" if column.startswith(">") else "left", no_wrap=True)
    return table


def _print(table: Table) -> None:
    """Print a table at its full width. By default rich would cut names to fit 80 columns, in pipes too."""
    wide = Console(width=10_000)
    Console(width=Measurement.get(wide, wide.options, table).maximum).print(table)


def _number(value: int | None) -> str:
    return _UNKNOWN if value is None else f"{value:,}"


def topics(statuses: Sequence["TopicStatus"]) -> None:
    """Print a line per topic; warnings and errors on stderr."""
    table = _table("CLUSTER", "TOPIC", ">PARTITIONS", ">EARLIEST..LATEST", ">CURSOR", ">LAG", "TABLE")
    for status in statuses:
        partitions = status.partitions
        held = sum((partition.latest or 0) - (partition.earliest or 0) for partition in partitions)
        cursors = [partition.cursor for partition in partitions if partition.cursor is not None]
        table.add_row(
            status.cluster,
            _safe(status.topic),
            str(len(partitions)),
            f"{held:,} {_unit(partitions)}",
            f"{sum(cursors):,}" if cursors else "-",
            _number(status.lag),
            status.table,
        )
    if statuses:
        _print(table)
    else:
        _out.print("no topics")
    _problems(statuses)


def _unit(partitions: Sequence["PartitionStatus"]) -> str:
    """What offsets count: bytes in 0.7, where partitions belong to brokers; records in later versions."""
    return "bytes" if any(partition.id.broker is not None for partition in partitions) else "records"


def _problems(results: "Sequence[TopicStatus | TopicLoad]") -> None:
    for result in results:
        for sentence in result.warnings:
            warning(f"{result.topic}: {sentence}")
        if result.error:
            error(f"{result.topic}: {result.error}")


def statuses(statuses: Sequence["TopicStatus"], now_ms: int) -> None:
    """Print a line per topic and a line of totals; warnings and errors on stderr."""
    table = _table("CLUSTER", "TOPIC", "STATE", ">LAG", ">LATE", ">LEFT", ">LAST LOAD", ">VERSION")
    for status in statuses:
        state, loaded_ms = status.state(now_ms), status.loaded_at_ms
        lag, late, left = ("-",) * 3 if state is TopicState.GONE else _lag_late_left(status, now_ms)
        table.add_row(
            status.cluster,
            _safe(status.topic),
            f"[{_STATES[state]}]{state}[/]",
            lag,
            late,
            left,
            "-" if loaded_ms is None else duration((now_ms - loaded_ms) / 1000),
            "-" if status.version is None else str(status.version),
        )
    _print(table)
    _out.print(_totals(statuses, now_ms), highlight=False)
    _problems(statuses)


def _lag_late_left(status: "TopicStatus", now_ms: int) -> tuple[str, str, str]:
    """The columns LAG, LATE and LEFT."""
    if status.lag == 0:
        return "0", "-", "-"
    unit = " bytes" if status.lag and _unit(status.partitions) == "bytes" else ""
    late_s, left_s = status.late_s(now_ms), status.left_s(now_ms)
    late = _UNKNOWN if late_s is None else duration(late_s)
    if left_s is not None:
        left = f"{'~' if status.kept.by is RetentionSource.ESTIMATE else ''}{duration(left_s)}"
    else:
        left = "never" if status.kept.ms == FOREVER else _UNKNOWN
    return f"{_number(status.lag)}{unit}", late, left


def _totals(statuses: Sequence["TopicStatus"], now_ms: int) -> str:
    states = Counter(status.state(now_ms) for status in statuses)
    lags: Counter[str] = Counter()
    for status in statuses:
        lags[_unit(status.partitions)] += status.lag or 0
    parts = [f"{len(statuses)} topic{'' if len(statuses) == 1 else 's'}"]
    parts += [f"{states[state]} {state}" for state in _STATES if states[state]]
    parts += [f"lag {lag:,} {unit}" for unit, lag in sorted(lags.items()) if lag]
    return ", ".join(parts)


def loads(results: Sequence["TopicLoad"]) -> None:
    """Print a line per topic; warnings and errors on stderr."""
    table = _table("TOPIC", ">VERSION", ">ROWS", ">BYTES", ">FILES", ">SECONDS", "TABLE")
    for load in results:
        numbers = map(_number, (load.version, load.rows, load.bytes, load.files))
        table.add_row(_safe(load.topic), *numbers, f"{load.seconds:.1f}", load.table)
    _print(table)
    _problems(results)


def _gaps(gaps: Mapping[str, int]) -> str:
    return ", ".join(f"{cause} {count:,}" for cause, count in gaps.items()) or "-"


def proofs(proofs: Sequence["Proof"]) -> None:
    """Print a line per partition, then for each table that it is proven, or its problems on stderr."""
    table = _table("TOPIC", "PARTITION", ">START", ">END", ">ROWS", ">MISSING", ">DUPLICATES", "GAPS")
    for proof in proofs:
        for part in proof.partitions:
            offsets = part.offsets
            numbers = map(_number, (offsets.start, offsets.stop, part.rows, part.missing, part.duplicates))
            table.add_row(_safe(proof.topic), str(offsets.partition), *numbers, _gaps(part.gaps))
    _print(table)
    for proof in proofs:
        for problem in proof.problems:
            error(f"{proof.topic}: {problem}")
        if proof.proven:
            rows = sum(partition.rows for partition in proof.partitions)
            _out.print(f"[green]proven[/] {_safe(proof.topic)}: {rows:,} rows, each exactly once", highlight=False)


def comparisons(proofs: Sequence["DeepProof"]) -> None:
    """Print a line per partition that was compared with its broker."""
    table = _table("TOPIC", "PARTITION", ">FROM", ">TO", *_COMPARED, ">NOT COMPARED")
    for proof in proofs:
        for part in proof.compared:
            ends = map(_number, (part.offsets.start, part.offsets.stop))
            numbers = (*ends, *_counts(part.comparison), _number(part.not_compared))
            table.add_row(_safe(proof.topic), str(part.offsets.partition), *numbers)
    if proofs:
        _print(table)


def replays(results: Sequence["TopicReplay"]) -> None:
    """Print a line per interval that was fetched again, then what changed."""
    table = _table("TOPIC", "PARTITION", ">FROM", ">TO", ">ROWS", *_COMPARED, "GAPS")
    for replay in results:
        for part in replay.partitions:
            numbers = map(_number, (part.offsets.start, part.offsets.stop, part.rows))
            compared = _counts(part.comparison)
            table.add_row(_safe(replay.topic), str(part.offsets.partition), *numbers, *compared, _gaps(part.gaps))
    _print(table)
    for replay in results:
        if replay.error:
            error(f"{replay.topic}: {replay.error}")
        elif replay.changed:
            _replayed("replaced", replay, f"{replay.rows:,} rows, version {replay.version}")
        elif replay.partitions:
            _replayed("unchanged", replay, f"{replay.rows:,} rows are equal to the brokers' records")
        else:
            _replayed("unchanged", replay, "the table has no rows in this interval")


def _replayed(outcome: str, replay: "TopicReplay", sentence: str) -> None:
    _out.print(f"[green]{outcome}[/] {_safe(replay.topic)}: {sentence}", highlight=False)


def _counts(comparison: "Comparison") -> tuple[str, ...]:
    return (_number(comparison.equal), *(_number(kind.count) for kind in comparison.unlike.values()))


def history(entries: Sequence["HistoryEntry"]) -> None:
    """Print a line per commit, the newest first."""
    table = _table("VERSION", "TIME (UTC)", "WHAT", "RUN", ">ROWS", ">BYTES", ">FILES", ">RANGES", "GAPS", "NOTES")
    for past in entries:
        numbers = map(_number, (past.rows, past.bytes, past.files, len(past.ranges))) if past.entry else [""] * 4
        table.add_row(
            str(past.commit.version),
            f"{past.commit.time:%Y-%m-%d %H:%M:%S}",
            _safe(past.what),
            _safe(past.entry.run[:_RUN_ID_LENGTH]) if past.entry else "",
            *numbers,
            _gaps(past.gaps),
            _safe("; ".join(past.notes)),
            style="dim" if past.undone_by is not None else None,
        )
    _print(table)


def rewound(plan: "Rewind", version: int) -> None:
    """Print the cursors of each partition before and after, then a sentence about the new version."""
    table = _table("PARTITION", ">CURSOR WAS", ">IS NOW")
    for id_, before, after in plan.cursors:
        table.add_row(str(id_), *("-" if cursor is None else _number(cursor) for cursor in (before, after)))
    _print(table)
    _out.print(
        f"version {version}: {_safe(plan.change.restored.topic.name)} went back {plan}", soft_wrap=True, highlight=False
    )


def cursors(cursors: Sequence["ExportedCursor"]) -> None:
    """Print a line per partition."""
    table = _table("CLUSTER", "TOPIC", "PARTITION", ">OFFSET")
    for cursor in cursors:
        table.add_row(cursor.cluster, _safe(cursor.topic), str(cursor.id), _number(cursor.offset))
    _print(table)


def imports(plans: Sequence["OffsetsImport"]) -> None:
    """Print a line per partition: the offset of the source beside the broker's log."""
    table = _table("TOPIC", "PARTITION", ">ADOPTED", ">BEGINS AT", ">LOG BEGINS", ">LOG ENDS", ">TO LOAD")
    for plan in plans:
        for start in plan.partitions:
            adopted = "-" if start.adopted is None else _number(start.adopted)
            numbers = map(_number, (start.start, start.earliest, start.latest, start.left))
            table.add_row(_safe(plan.topic), str(start.id), adopted, *numbers)
    _print(table)


def cleanings(results: Sequence[tuple[str, "CleanResult"]], *, deleted: bool) -> None:
    """Print a line per topic."""
    table = _table("TOPIC", ">COLLECTED" if deleted else ">TO COLLECT", ">BYTES", ">MERGED", ">INTO", "TABLE")
    for topic, result in results:
        numbers = map(_number, (len(result.collected), result.bytes, result.merged, result.larger))
        table.add_row(_safe(topic), *numbers, result.table)
    _print(table)
    for topic, result in results:
        if result.busy:
            warning(f"{topic}: small files were not merged because another writer committed first; run clean again")
    if not deleted and any(result.collected for _, result in results):
        _out.print("nothing was changed; give --delete to delete these files")


def check_result(result: "CheckResult") -> None:
    """Print a line for a test of `penstock config check`."""
    mark = "[green]ok    [/]" if result.ok else "[bold red]failed[/]"
    _out.print(f"{mark} {_safe(f'{result.subject}: {result.message}')}", soft_wrap=True, highlight=False)


@contextmanager
def progress() -> Iterator[Callable[[str], Callable[[int, int], None]]]:
    """Show progress bars on stderr, if it is a terminal.

    Yields a function that adds the bar of a topic and returns its update function, which takes done and total.
    """
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
            bar = bars.add_task(_safe(topic), total=None)
            return lambda done, total: bars.update(bar, completed=done, total=total)

        yield begin
