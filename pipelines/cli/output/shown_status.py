"""The result of `penstock status`, `penstock topics` and `penstock complete` for people."""

from collections import Counter
from collections.abc import Collection, Iterator

from rich.text import Text

from kafka_io.cluster.retention import FOREVER
from pipelines.cli.output import terminal
from pipelines.cli.output.console import named, print_problems, print_sentence
from pipelines.cli.output.log_lines import error, error_text, warning
from pipelines.cli.output.printed_table import UNKNOWN, PrintedResult, PrintedResults, print_table
from pipelines.ledger.event_time import utc_text
from pipelines.status.status import RetentionSource, TopicState
from resources.errors import CursorExpired
from resources.explanations.codes import code_of
from resources.quantities import count, counted, duration, size
from resources.table_names import route_of, topic_of

_STATES = {  # the style of each state, in the order of the totals
    TopicState.LOSING: terminal.BAD,
    TopicState.ERROR: terminal.BAD,
    TopicState.AT_RISK: terminal.WARN,
    TopicState.HELD_BACK: terminal.WARN,
    TopicState.BEHIND: "",
    TopicState.NEW: "",
    TopicState.GONE: terminal.DIM,
    TopicState.LOADED: terminal.GOOD,
}
WITHOUT_IDS = (
    "so only leader epochs and the last loaded messages show that a topic was created again: set zookeeper too"
)


def topics(statuses: PrintedResults) -> None:
    """Print a line per topic; warnings and errors on stderr."""
    if statuses:
        columns = "cluster topic ?>partitions >size:EARLIEST..LATEST ?>cursor >lag ?table"
        print_table(columns, [{**status, **_size_and_cursor(status)} for status in statuses])
    else:
        print_sentence("no topics")
    print_problems(statuses)


def _size_and_cursor(status: PrintedResult) -> PrintedResult:
    partitions = status["partitions"]
    amount = sum((partition["latest"] or 0) - (partition["earliest"] or 0) for partition in partitions)
    cursors = [partition["cursor"] for partition in partitions if partition["cursor"] is not None]
    text = size(amount) if _counts_bytes(status) else f"{count(amount)} records"
    return {"size": text, "cursor": sum(cursors) if cursors else "-"}


def _counts_bytes(status: PrintedResult) -> bool:
    """Whether offsets count bytes, as in 0.7, where partitions belong to brokers. Later versions count records."""
    return any(partition["broker"] is not None for partition in status["partitions"])


def statuses(statuses: PrintedResults, *, now_ms: int) -> None:
    """Print a line per topic or table, and a line of totals; warnings and errors on stderr.

    A table such as `events/orders` has no lag of its own if the line of its topic has it.
    """
    listed = {(status["cluster"], status["topic"]) for status in statuses}
    topics = [status for status in statuses if not _has_topic_in(status, listed)]
    columns = "cluster topic state >lag ?>lost >late >left ?>loaded:LAST_LOAD ?>version"
    if any(status["valid_through_ms"] is not None for status in statuses):
        columns += " ?valid_through:VALID_THROUGH"
    of_topic = dict.fromkeys(("lag", "lost", "late", "left"), "-")
    rows = [
        {**status, **_status_cells(status, now_ms), **(of_topic if _has_topic_in(status, listed) else {})}
        for status in statuses
    ]
    print_table(columns, rows)
    terminal.print_line(_totals(topics, tables=len(statuses) - len(topics)))
    print_problems(statuses)
    _without_ids(topics)
    for status in topics:
        losses = ((sentence, code_of(CursorExpired)) for sentence in _losses(status))
        for sentence, code in (*losses, *_last_error(status, now_ms)):
            error(sentence, code=code, topic=status["topic"])
    for status in statuses:
        if status["bad_records"]:
            warning(
                f"{count(status['bad_records'])} rows have `_error`: their values do not decode; `penstock redecode "
                f"{status['topic']}` decodes them when the schema or the settings are right",
                topic=status["topic"],
            )


def _has_topic_in(status: PrintedResult, listed: Collection[tuple[str, str]]) -> bool:
    """Whether this is one of the other tables of a topic that is listed too."""
    topic = status["topic"]
    return bool(route_of(topic)) and (status["cluster"], topic_of(topic)) in listed


def completeness(results: PrintedResults) -> None:
    """Print a sentence for each table: whether it is complete, and if not, what is missing."""
    for result in results:
        valid_ms, through = result["valid_through_ms"], utc_text(result["through_ms"])
        valid = "no time" if valid_ms is None else utc_text(valid_ms)
        verb = "is" if result["complete"] else "is not"
        print_sentence(f"{result['topic']} {verb} complete through {through}: it is valid through {valid}")
        unproven = [part["partition"] for part in map(named, result["partitions"]) if part["proven_ms"] is None]
        if unproven and not result["complete"]:
            print_sentence(f"partitions without a proof: {', '.join(map(str, unproven))}")
        if result["audit"]:
            _audit(result["audit"])


def _audit(audit: PrintedResult) -> None:
    """Print how the hours of a table compare with what producers counted."""
    counts, hours = audit["counts_topic"], audit["compared_hours"]
    rows, expected = count(audit["rows"]), count(audit["expected"])
    print_sentence(f"{hours} hours compared with {counts}: {rows} rows, {expected} counted records")
    if not audit["has_all_counts"]:
        valid_ms = audit["counts_valid_through_ms"]
        valid, needed = "no time" if valid_ms is None else utc_text(valid_ms), utc_text(audit["counts_needed_ms"])
        print_sentence(f"{counts} is only valid through {valid}, but counts may be sent until {needed}")
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
    for cluster, topic_count in sorted(counts.items()):
        warning(f"{cluster}: {count(topic_count)} of its topics have no id, {WITHOUT_IDS}")


def _losses(status: PrintedResult) -> Iterator[str]:
    """A sentence about each partition that lost offsets before they were loaded."""
    for partition in map(named, status["partitions"]):
        if partition["lost"]:
            first, stop = partition["cursor"], partition["earliest"]
            yield (
                f"offsets [{first}, {stop}) of partition {partition['partition']} expired before they were loaded; "
                f"`penstock load {topic_of(status['topic'])} --on-expired skip` records them as a gap and continues"
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
    late = UNKNOWN if late_s is None else duration(late_s)
    if left_s is not None:
        time_left = f"{'~' if retention['by'] == RetentionSource.ESTIMATE else ''}{duration(left_s)}"
    else:
        time_left = "never" if retention["ms"] == FOREVER else UNKNOWN
    return size(lag) if lag and _counts_bytes(status) else lag, late, time_left


def _totals(statuses: PrintedResults, *, tables: int) -> Text:
    """How many topics there are, how many of them are in each state, and the sums of their lags.

    `tables` is the number of their other tables.
    """
    states = Counter(status["state"] for status in statuses)
    parts = [Text(counted(len(statuses), "topic"))]
    parts += [Text(counted(tables, "further table"))] if tables else []
    parts += [Text(f"{count(states[state])} {state}", style) for state, style in _STATES.items() if states[state]]
    for is_size in (True, False):
        lag = sum(status["lag"] or 0 for status in statuses if _counts_bytes(status) is is_size)
        if lag:
            parts.append(Text(f"lag {size(lag) if is_size else f'{count(lag)} records'}"))
    return Text(", ").join(parts)
