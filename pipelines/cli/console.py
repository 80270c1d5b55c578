"""The output for people: tables on stdout, progress on stderr, colours on terminals only.

A table shows the same records that `--json` prints.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.measure import Measurement
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

from kafka_io.cluster.retention import FOREVER
from kafka_io.model import BrokerPartition
from pipelines.cli.log_lines import error, error_text, failure, is_json, lead_on, safe, warning
from pipelines.loading.event_time import utc_text
from pipelines.status.status import RetentionSource, TopicState
from resources.errors import CursorExpired, TableNotProven
from resources.explanations.codes import code_of

if TYPE_CHECKING:
    from kafka_io.registry.listing import SkippedNode
    from pipelines.maintenance.history import HistoryEntry

PrintedResult = Mapping[str, Any]
"""The fields of a result that `--json` prints. The tables show some of them."""
PrintedResults = Sequence[PrintedResult]

_out = Console()
_err = Console(stderr=True)
_UNKNOWN = "?"
_TIME_UNITS = (("d", 86_400), ("h", 3600), ("m", 60), ("s", 1))
_COMPARED = ">equal >differing >only_in_table >only_on_broker >copies"
_STATES = {  # the style of each state, in the order of the totals
    TopicState.LOSING: "bold red",
    TopicState.ERROR: "red",
    TopicState.AT_RISK: "yellow",
    TopicState.HELD_BACK: "yellow",
    TopicState.BEHIND: "cyan",
    TopicState.NEW: "blue",
    TopicState.GONE: "dim",
    TopicState.LOADED: "green",
}
WITHOUT_IDS = (
    "so only leader epochs and the last loaded messages show that a topic was created again: set zookeeper too"
)
_NAMED_TOPICS = 20
_RUN_ID_LENGTH = 8  # enough to distinguish runs; Dagster shows as many


def skipped_topics(nodes: "Iterable[SkippedNode]") -> None:
    """Warn about each topic whose entry in the registry cannot be read."""
    for node in nodes:
        warning(f"skipped {node.path}: {node.reason}")


def duration(seconds: float) -> str:
    """The two largest units, rounded down: `4 d 3 h`, `3 m 20 s`, `0 s`. A negative duration begins with a minus."""
    remaining_s = int(abs(seconds))
    parts: list[tuple[int, str]] = []
    for unit, size in _TIME_UNITS:
        count, remaining_s = divmod(remaining_s, size)
        if count or parts:
            parts.append((count, unit))
    text = " ".join(f"{count} {unit}" for count, unit in parts[:2] if count) or "0 s"
    return f"-{text}" if seconds <= -1 else text


def print_table(columns: str, records: Iterable[PrintedResult], *, unknown: str = _UNKNOWN) -> None:
    """Print a table at its full width. By default rich would cut names to fit 80 columns, in pipes too.

    Args:
        columns: names of fields, separated by spaces; `>` before a name aligns its column right. The heading is the
            name in capitals, or what follows a colon.
        records: one for each line.
        unknown: what is shown for None.
    """
    table = Table(box=None, pad_edge=False, header_style="bold")
    names = []
    for column in columns.split():
        name, _, heading = column.removeprefix(">").partition(":")
        names.append(name)
        title = (heading or name).upper().replace("_", " ")
        table.add_column(title, justify="right" if column.startswith(">") else "left", no_wrap=True)
    for record in records:
        table.add_row(*(_cell(record[name], unknown) for name in names), style=record.get("style"))
    wide = Console(width=10_000)
    Console(width=Measurement.get(wide, wide.options, table).maximum).print(table)


def _cell(value: object, unknown: str) -> str | Text:
    """A value as text: numbers with separators, the length of a list, gaps with their causes."""
    match value:
        case Text():
            return value
        case int():
            text = f"{value:,}"
        case float():
            text = f"{value:.1f}"
        case list() | tuple():
            text = str(len(value))
        case dict():
            text = ", ".join(f"{cause} {count:,}" for cause, count in value.items()) or "-"
        case _:
            text = unknown if value is None else safe(str(value))
    return text


def _sentence(text: str, highlighted: str = "") -> None:
    """Print a sentence on stdout, after a highlighted word if one is given."""
    _out.print(f"[green]{highlighted}[/] {safe(text)}" if highlighted else safe(text), soft_wrap=True, highlight=False)


def _named(partition: PrintedResult) -> PrintedResult:
    """The record of a partition, with its name in place of its number."""
    return {**partition, "partition": BrokerPartition(partition["broker"], partition["partition"])}


def _partitions(results: PrintedResults, field: str = "partitions") -> list[PrintedResult]:
    """The partitions of all results, each with its topic."""
    return [{**_named(part), "topic": result["topic"]} for result in results for part in result[field]]


def topics(statuses: PrintedResults) -> None:
    """Print a line per topic; warnings and errors on stderr."""
    if statuses:
        columns = "cluster topic >partitions >size:EARLIEST..LATEST >cursor >lag table"
        print_table(columns, [{**status, **_size_and_cursor(status)} for status in statuses])
    else:
        _out.print("no topics")
    _problems(statuses)


def _size_and_cursor(status: PrintedResult) -> PrintedResult:
    partitions = status["partitions"]
    size = sum((partition["latest"] or 0) - (partition["earliest"] or 0) for partition in partitions)
    cursors = [partition["cursor"] for partition in partitions if partition["cursor"] is not None]
    return {"size": f"{size:,} {_unit(status)}", "cursor": sum(cursors) if cursors else "-"}


def _unit(status: PrintedResult) -> str:
    """What offsets count: bytes in 0.7, where partitions belong to brokers; records in later versions."""
    return "bytes" if any(partition["broker"] is not None for partition in status["partitions"]) else "records"


def _problems(results: PrintedResults) -> None:
    for result in results:
        for sentence in result["warnings"]:
            warning(sentence, cluster=result["cluster"], topic=result["topic"])
        for error_object in result["errors"]:
            failure(error_object, topic=result["topic"])


def statuses(statuses: PrintedResults, *, now_ms: int) -> None:
    """Print a line per topic and a line of totals; warnings and errors on stderr."""
    columns = "cluster topic state >lag >lost >late >left >loaded:LAST_LOAD >version"
    if any(status["valid_through_ms"] is not None for status in statuses):
        columns += " valid_through:VALID_THROUGH"
    print_table(columns, [{**status, **_status_cells(status, now_ms)} for status in statuses])
    _sentence(_totals(statuses))
    _problems(statuses)
    _without_ids(statuses)
    for status in statuses:
        losses = ((sentence, code_of(CursorExpired)) for sentence in _losses(status))
        for sentence, code in (*losses, *_last_error(status, now_ms)):
            error(sentence, code=code, topic=status["topic"])
        if status["bad_records"]:
            warning(f"{status['bad_records']:,} rows have `_error`: their values do not decode", topic=status["topic"])


def completeness(results: PrintedResults) -> None:
    """Print a sentence for each table: whether it is complete, and if not, what is missing."""
    for result in results:
        valid_ms, through = result["valid_through_ms"], utc_text(result["through_ms"])
        valid = "no time" if valid_ms is None else utc_text(valid_ms)
        verb = "is" if result["complete"] else "is not"
        _sentence(f"{result['topic']} {verb} complete through {through}: it is valid through {valid}")
        unproven = [part["partition"] for part in map(_named, result["partitions"]) if part["proven_ms"] is None]
        if unproven and not result["complete"]:
            _sentence(f"partitions without a proof: {', '.join(map(str, unproven))}")
        if result["audit"]:
            _audit(result["audit"])


def _audit(audit: PrintedResult) -> None:
    """Print how the hours of a table compare with what producers counted."""
    counts, hours = audit["counts_topic"], audit["compared_hours"]
    _sentence(f"{hours} hours compared with {counts}: {audit['rows']:,} rows, {audit['expected']:,} counted records")
    if not audit["has_all_counts"]:
        valid_ms = audit["counts_valid_through_ms"]
        valid, needed = "no time" if valid_ms is None else utc_text(valid_ms), utc_text(audit["counts_needed_ms"])
        _sentence(f"{counts} is only valid through {valid}, but counts may be sent until {needed}")
    incomplete = audit["incomplete_hours"]
    if incomplete:
        hours = [{**hour, "hour": utc_text(hour["start_ms"])} for hour in incomplete]
        print_table("hour >expected >rows >difference", hours)
    if audit["hours_without_counts"]:
        warning(f"{audit['hours_without_counts']} hours have rows, but no producer counted any: nothing was compared")
    if audit["malformed_counts"]:
        warning(f"{audit['malformed_counts']} count messages in {counts} cannot be used, so their records are missing")


def _without_ids(statuses: PrintedResults) -> None:
    """Warn once for each cluster about topics without an id (fault P08)."""
    counts = Counter(status["cluster"] for status in statuses if status["has_id"] is False)
    for cluster, count in sorted(counts.items()):
        warning(f"{cluster}: {count} of its topics have no id, {WITHOUT_IDS}")


def _losses(status: PrintedResult) -> Iterator[str]:
    """A sentence about each partition that lost offsets before they were loaded."""
    for partition in map(_named, status["partitions"]):
        if partition["lost"]:
            first, stop = partition["cursor"], partition["earliest"]
            yield (
                f"offsets [{first}, {stop}) of partition {partition['partition']} expired before they were loaded; "
                f"`penstock load {status['topic']} --on-expired skip` records them as a gap and continues"
            )


def _last_error(status: PrintedResult, now_ms: int) -> Iterator[tuple[str, str | None]]:
    """Why the last load failed, and the code, unless the status already has an error, which says what is wrong now."""
    last = status["last_error"]
    if last and not status["errors"]:
        age = f"{duration((now_ms - last['time_ms']) / 1000)} ago" if last["time_ms"] else "at an unknown time"
        and_more = f" (and {last['count'] - 1} more)" if last["count"] > 1 else ""
        reason = "; its error cannot be read" if not last["errors"] else f": {error_text(last['errors'][0])}{and_more}"
        yield f"the last load failed {age}{reason}", last["errors"][0]["code"] if last["errors"] else None


def _status_cells(status: PrintedResult, now_ms: int) -> PrintedResult:
    state, loaded_ms, version = status["state"], status["loaded_at_ms"], status["version"]
    lag, late, time_left = ("-",) * 3 if state == TopicState.GONE else _lag_late_left(status)
    return {
        "state": Text(state, _STATES[state]),
        "lag": lag,
        "lost": status["lost"] or "-",
        "late": late,
        "left": time_left,
        "loaded": "-" if loaded_ms is None else duration((now_ms - loaded_ms) / 1000),
        "version": "-" if version is None else str(version),
        "valid_through": "-" if status["valid_through_ms"] is None else utc_text(status["valid_through_ms"]),
    }


def _lag_late_left(status: PrintedResult) -> tuple[object, str, str]:
    """The columns LAG, LATE and LEFT."""
    lag, late_s, left_s, retention = (status[name] for name in ("lag", "late_s", "left_s", "kept"))
    if lag == 0:
        return "0", "-", "-"
    late = _UNKNOWN if late_s is None else duration(late_s)
    if left_s is not None:
        time_left = f"{'~' if retention['by'] == RetentionSource.ESTIMATE else ''}{duration(left_s)}"
    else:
        time_left = "never" if retention["ms"] == FOREVER else _UNKNOWN
    return f"{lag:,} bytes" if lag and _unit(status) == "bytes" else lag, late, time_left


def _totals(statuses: PrintedResults) -> str:
    states = Counter(status["state"] for status in statuses)
    lags: Counter[str] = Counter()
    for status in statuses:
        lags[_unit(status)] += status["lag"] or 0
    parts = [f"{len(statuses)} topic{'' if len(statuses) == 1 else 's'}"]
    parts += [f"{states[state]} {state}" for state in _STATES if states[state]]
    parts += [f"lag {lag:,} {unit}" for unit, lag in sorted(lags.items()) if lag]
    return ", ".join(parts)


def loads(results: PrintedResults) -> None:
    """Print a line per topic; warnings and errors on stderr."""
    print_table("topic >version >rows >bytes >files >seconds table", results)
    _problems(results)


def proofs(proofs: PrintedResults) -> None:
    """Print a line per partition, then for each table that it is proven, or its problems on stderr.

    Deep proofs have a second line per partition: how its rows compare with the broker's records.
    """
    deep = [proof for proof in proofs if "compared" in proof]
    if deep:
        print_table(f"topic partition >start:FROM >end:TO {_COMPARED} >not_compared", _partitions(deep, "compared"))
    print_table("topic partition >start >end >rows >missing >duplicates gaps", _partitions(proofs))
    for proof in proofs:
        for problem in proof["problems"]:
            error(problem, code=None if proof["errors"] else code_of(TableNotProven), topic=proof["topic"])
        if proof["proven"]:
            rows = sum(partition["rows"] for partition in proof["partitions"])
            state = proof.get("state")
            keys = f"; the state table has the newest row of {state['keys']:,} keys" if state else ""
            _sentence(f"{proof['topic']}: {rows:,} rows, each exactly once{keys}", "proven")


def replays(results: PrintedResults) -> None:
    """Print a line per interval that was fetched again, then what changed."""
    print_table(f"topic partition >start:FROM >end:TO >rows {_COMPARED} gaps", _partitions(results))
    for replay in results:
        topic, rows = replay["topic"], f"{replay['rows']:,} rows"
        if replay["errors"]:
            failure(replay["errors"][0], topic=topic)
        elif replay["changed"]:
            _sentence(f"{topic}: {rows}, version {replay['version']}", "replaced")
        elif replay["partitions"]:
            _sentence(f"{topic}: {rows} are equal to the brokers' records", "unchanged")
        else:
            _sentence(f"{topic}: the table has no rows in this interval", "unchanged")


def states(results: PrintedResults) -> None:
    """Print a line per state table."""
    print_table("topic >since >version >changed >added >removed table", results)


def redecodes(results: PrintedResults) -> None:
    """Print a line per reason why records do not decode, then what changed."""
    for result in results:
        if result["reasons"]:
            print_table(">records reason", result["reasons"])
        for sentence in result["warnings"]:
            warning(sentence, topic=result["topic"])
        if result["errors"]:
            failure(result["errors"][0], topic=result["topic"])
        columns = f", new columns: {', '.join(result['columns'])}" if result["columns"] else ""
        word = "would decode" if result["dry_run"] else "decode now"
        _sentence(
            f"{result['topic']}: {result['decoded']:,} records {word}, {result['bad_records']:,} do not; "
            f"version {result['version']}{columns}"
        )


def history(entries: Sequence["HistoryEntry"]) -> None:
    """Print a line per commit, the newest first."""
    columns = "version time:TIME_(UTC) what run >rows >bytes >files >ranges gaps notes"
    print_table(columns, map(_commit_cells, entries))


def schemas(results: PrintedResults) -> None:
    """Print a line per schema in the registry, then one per column of the table; warnings on stderr."""
    for result in results:
        if result["schemas"]:
            rows = [
                {**schema, "subjects": ", ".join(schema["subjects"]), "met": "met" if schema["is_met"] else "newest"}
                for schema in result["schemas"]
            ]
            print_table(">id type met subjects", rows)
        columns = [{**column, "new": "new" if column["is_new"] else ""} for column in result["columns"]]
        print_table("name type field new comment", columns)
        for sentence in result["warnings"]:
            warning(sentence, topic=result["topic"])


def _commit_cells(entry: "HistoryEntry") -> PrintedResult:
    fields = entry.as_dict()
    return {
        **{name: fields.get(name, "") for name in ("rows", "bytes", "files", "ranges")},
        "version": str(entry.commit.version),
        "time": f"{entry.commit.time:%Y-%m-%d %H:%M:%S}",
        "what": entry.what,
        "run": fields.get("run", "")[:_RUN_ID_LENGTH],
        "gaps": entry.gaps,
        "notes": "; ".join(entry.notes),
        "style": "dim" if entry.undone_by is not None else None,
    }


def rewound(rewinds: PrintedResults, *, sentence: str) -> None:
    """Print the cursors of each partition before and after, then a sentence about the new version."""
    cursors = [_named(cursor) for rewind in rewinds for cursor in rewind["cursors"]]
    print_table("partition >before:CURSOR_WAS >after:IS_NOW", cursors, unknown="-")
    _sentence(sentence)


def cursors(cursors: PrintedResults) -> None:
    """Print a line per partition."""
    print_table("cluster topic partition >offset", map(_named, cursors))


def imports(plans: PrintedResults) -> None:
    """Print a line per partition: the offset of the source beside the broker's log."""
    columns = "topic partition >adopted >start:BEGINS_AT >earliest:LOG_BEGINS >latest:LOG_ENDS >left:TO_LOAD"
    print_table(columns, _partitions(plans), unknown="-")


def cleanings(results: PrintedResults, *, deleted: bool) -> None:
    """Print a line per topic."""
    collected = "collected" if deleted else "collected:TO_COLLECT"
    states = [{**state, "topic": f"{result['topic']} (state)"} for result in results if (state := result["state"])]
    print_table(f"topic >{collected} >bytes >merged >larger:INTO table", [*results, *states])
    _explain_cleaned_states(states)
    _explain_uploads([*results, *states], deleted=deleted)
    for result in results:
        topic = result["topic"]
        if result["young"]:
            _sentence(
                f"{topic}: {result['young']} files of failed loads or of loads in progress stay, because they are "
                "younger than keep_days"
            )
        if result["empty"]:
            _sentence(f"{topic}: the table has no rows, because its first load failed or found no records")
        if result["foreign"]:
            warning(f"nothing was done: {result['foreign']}", topic=topic)
        if result["damaged"]:
            warning(
                "small files were not merged, because data files are lost or damaged: run "
                f"`penstock replay {topic} --from earliest --to latest`",
                topic=topic,
            )
        if result["busy"]:
            warning("small files were not merged because another writer committed first; run clean again", topic=topic)
    if not deleted and any(result["collected"] or result["uploads"] for result in [*results, *states]):
        _out.print("nothing was changed; give --delete to delete these files")


def _explain_uploads(results: PrintedResults, *, deleted: bool) -> None:
    for result in results:
        if result["uploads"]:
            verb = "were aborted" if deleted else "would be aborted"
            _sentence(f"{result['topic']}: {result['uploads']} uploads of files that were never completed {verb}")
    for reason in sorted({result["uploads_unknown"] for result in results} - {""}):
        _sentence(f"uploads that were never completed were not looked for: {reason}")


def _explain_cleaned_states(states: PrintedResults) -> None:
    for state in states:
        topic = state["topic"]
        if state["young"]:
            _sentence(f"{topic}: {state['young']} files of killed or running updates are younger than keep_days")
        if state["foreign"]:
            warning(f"nothing was done: {state['foreign']}", topic=topic)
        if state["damaged"]:
            warning("small files were not merged, because files are lost: run `penstock state --rebuild`", topic=topic)
        if state["busy"]:
            warning("small files were not merged because an update committed first; run clean again", topic=topic)


def check_result(result: PrintedResult) -> None:
    """Print a line for a test of `penstock config check`."""
    mark = "[green]ok    [/]" if result["ok"] else "[bold red]failed[/]"
    _out.print(f"{mark} {safe(result['check'])}: {safe(result['message'])}", soft_wrap=True, highlight=False)
    if result["repair"]:
        _out.print(f"       {safe(result['repair'])}", soft_wrap=True, highlight=False)
    lead_on(*(failed["code"] for failed in result["errors"]))


def initialised(results: PrintedResults) -> None:
    """Print the tests of `penstock init`, the topics, and the commands that come next."""
    for result in results:
        for check in result["checks"]:
            check_result(check)
        if not result["written"]:
            error("no settings file was written; repair the problem and run `penstock init` again")
            return
        topics = result["topics"]
        names = ", ".join(map(safe, topics[:_NAMED_TOPICS]))
        more = f" and {len(topics) - _NAMED_TOPICS} more" if len(topics) > _NAMED_TOPICS else ""
        _out.print(f"topics: {names or 'none yet'}{more}", soft_wrap=True, highlight=False)
        _out.print(f"written: {safe(result['settings'])}", soft_wrap=True, highlight=False)
        _out.print("next:", *(f"  {safe(command)}" for command in result["commands"]), sep="\n", highlight=False)


@contextmanager
def progress() -> Iterator[Callable[[str], Callable[[int, int], None]]]:
    """Show progress bars on stderr, if it is a terminal.

    Yields a function that adds the bar of a topic and returns its update function, which takes done and total. The bar
    is removed when everything is done, so the bars are few even if a run has very many topics.
    """
    amounts = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), MofNCompleteColumn())
    times = (TimeElapsedColumn(), TextColumn("left:"), TimeRemainingColumn())
    with Progress(*amounts, *times, console=_err, transient=True, disable=is_json() or not _err.is_terminal) as bars:
        by_topic: dict[str, TaskID] = {}

        def begin(topic: str) -> Callable[[int, int], None]:
            if topic not in by_topic:
                by_topic[topic] = bars.add_task(safe(topic), total=None)
            return partial(update, topic)

        def update(topic: str, done: int, total: int) -> None:
            if done >= total and topic in by_topic:
                bars.remove_task(by_topic.pop(topic))
            elif done < total:
                begin(topic)
                bars.update(by_topic[topic], completed=done, total=total)

        yield begin
