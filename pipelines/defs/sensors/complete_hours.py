"""Complete hours and days in Dagster: an external asset for each table that asks for it, and the sensor that reports.

The asset is `<key of the table>/hours` or `<key of the table>/days`. A partition is materialized when the table is
complete through its end. A tick of the sensor starts no run: it reads what is new in the logs of the tables, and
returns events. If the daemon dies before it has stored the cursor, the next tick returns the same events again. Assets
that depend on the partitions use `on_complete_partitions`.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import dagster as dg
import msgspec

from pipelines.defs.catalog.catalog import Catalog, TopicSchedule, cluster_named
from pipelines.defs.catalog.known_topics import KnownTopics, TopicStorage
from pipelines.defs.catalog.translator import KIND_OF
from pipelines.defs.sensors.reload import reload_definitions
from pipelines.defs.sensors.sensor_cursors import cursor_from
from pipelines.formats.tables import lake_table
from pipelines.status.audited_hours import Audit, CountedWindow
from pipelines.status.complete_windows import CompleteWindows, WindowReport, first_window
from pipelines.status.window_progress import WindowProgress
from pipelines.table.lake_table import LakeTable
from resources.errors import LoadError
from resources.penstock import PenstockResource
from resources.settings.time_windows import TimeWindows

MAX_REPORTS = 100
"""The maximum number of events of one tick: each takes the daemon 69 ms with SQLite."""
_MAX_TICK_S = 20.0
"""No further rows are counted after this time. Dagster stops a tick after 60 s."""
_LAST_PARTS = {"hourly": "hours", "daily": "days"}


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicWindows:
    """The hours or days of a table.

    Args:
        topic: the name of the topic, or of a table such as `events/orders`.
        table: the key of the table.
        windows: which they are.
        first_ms: where the first one begins; None if that is not known yet.
    """

    topic: str
    table: dg.AssetKey
    windows: TimeWindows
    first_ms: int | None

    @property
    def key(self) -> dg.AssetKey:
        """The key of the external asset."""
        return dg.AssetKey([*self.table.path, _LAST_PARTS[self.windows.length]])

    def partitions(self, first_ms: int) -> dg.TimeWindowPartitionsDefinition:
        """The partitions of the external asset."""
        first, zone = self.windows.key(first_ms), self.windows.time_zone
        if self.windows.length == "hourly":
            return dg.HourlyPartitionsDefinition(first, timezone=zone)
        return dg.DailyPartitionsDefinition(first, timezone=zone)


def windows_of(schedule: TopicSchedule) -> Iterator[TopicWindows]:
    """The tables of a schedule with complete hours or days."""
    known = schedule.catalog.known.get(schedule.cluster, KnownTopics())
    for topic, spec in schedule.specs.items():
        shown = schedule.catalog.settings.options_of(topic).catalog
        windows, since = shown.complete_windows, shown.complete_since
        if windows is not None:
            first = known.first_windows.get(topic) if since is None else windows.first(since)
            yield TopicWindows(
                topic=topic,
                table=spec.key,
                windows=windows,
                first_ms=None if first is None else windows.start_of(first),
            )


def complete_specs(schedule: TopicSchedule) -> Iterator[dg.AssetSpec]:
    """The external assets of a schedule. A topic gets one as soon as its first hour or day is known."""
    for topic in windows_of(schedule):
        if topic.first_ms is not None:
            table, props = schedule.specs[topic.topic], schedule.props(topic.topic)
            of_what = f"{'table' if props.route else 'topic'} {topic.topic}"
            yield dg.AssetSpec(
                topic.key,
                deps=[table.key],
                group_name=table.group_name,
                owners=list(table.owners),
                kinds={KIND_OF[props.table_format]},
                partitions_def=topic.partitions(topic.first_ms),
                description=f"The complete {topic.key.path[-1]} of the {of_what}.",
                metadata=props.metadata,
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Reported:
    """The cursor of the sensor. If it is unreadable, everything is reported again.

    Args:
        turn: the number of the tick; each begins with another topic.
        topics: how far the windows of each topic were reported.
    """

    turn: int = 0
    topics: Mapping[str, WindowProgress] = field(default_factory=dict)


def complete_hours_sensors(
    catalog: Catalog, schedules: Sequence[TopicSchedule], *, clock: Callable[[], float] = time.monotonic
) -> Iterator[dg.SensorDefinition]:
    """The sensor of each cluster that has topics with complete hours or days."""
    topics: dict[str, list[TopicWindows]] = {}
    for schedule in schedules:
        topics.setdefault(schedule.cluster, []).extend(windows_of(schedule))
    for cluster, own in topics.items():
        if own:
            yield _sensor(catalog, cluster, own, clock)


def _sensor(
    catalog: Catalog, cluster: str, topics: Sequence[TopicWindows], clock: Callable[[], float]
) -> dg.SensorDefinition:
    @dg.sensor(
        name=cluster_named(catalog, "complete_hours", cluster),
        minimum_interval_seconds=30,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description=f"Reports complete hours and days of topics in the cluster {cluster} as materialized partitions.",
    )
    def complete_hours(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        penstock = catalog.source.fresh()
        storage = TopicStorage(instance=context.instance, prefix=catalog.name, cluster=cluster)
        return _Tick(context=context, penstock=penstock, storage=storage, topics=topics, clock=clock).result()

    return complete_hours


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tick:
    """One tick of the sensor of a cluster."""

    context: dg.SensorEvaluationContext
    penstock: PenstockResource
    storage: TopicStorage
    topics: Sequence[TopicWindows]
    clock: Callable[[], float]

    def result(self) -> dg.SensorResult:
        """Report what is complete, and find the first window of topics for which it is not known."""
        until = self.clock() + _MAX_TICK_S
        before = cursor_from(self.context.cursor, Reported)
        turn = before.turn % len(self.topics)
        topics = {topic.topic: topic for topic in (*self.topics[turn:], *self.topics[:turn])}
        sentence = self._add_first_windows([topic for topic in topics.values() if topic.first_ms is None])
        looks = self._looks(topics.values(), before.topics, until)
        due = _shared({name: look.due(MAX_REPORTS) for name, look in looks.items()}, MAX_REPORTS)
        events: list[dg.AssetMaterialization] = []
        progress = {name: known for name, known in before.topics.items() if name in topics}
        for name, look in looks.items():
            reports = self._reports(look, due[name], until)
            counted = self._counted(look, reports)
            events += [event_of(topics[name], report, counted.get(report.start_ms)) for report in reports]
            progress[name] = look.reported([report.start_ms for report in reports]).progress
        cursor = msgspec.json.encode(Reported(turn=turn + 1, topics=progress)).decode()
        reason = None if events else sentence or "nothing else is complete"
        return dg.SensorResult(asset_events=events, skip_reason=reason, cursor=cursor)

    def _table(self, topic: TopicWindows) -> LakeTable:
        return lake_table(self.penstock.lake(), self.storage.cluster, topic.topic)

    def _add_first_windows(self, topics: Sequence[TopicWindows]) -> str:
        """Store where the first windows of topics begin, and make Dagster load their assets; returns what happened."""
        known = self.storage.known().first_windows if topics else {}
        starts: dict[str, int] = {}
        for topic in topics:
            if topic.topic not in known:
                with self._logged_errors(topic.topic):
                    first_ms = first_window(self._table(topic), topic.windows)
                    starts |= {} if first_ms is None else {topic.topic: first_ms}
        if not starts:
            return ""
        self.storage.add_first_windows(starts)
        reload = reload_definitions(self.context, self.penstock.settings().webserver)
        return f"new topics with complete hours or days: {len(starts)}; {reload.sentence}"

    def _looks(
        self, topics: Iterable[TopicWindows], known: Mapping[str, WindowProgress], until: float
    ) -> dict[str, CompleteWindows]:
        """The windows to report of each table that has changed, by topic."""
        looks: dict[str, CompleteWindows] = {}
        for topic in topics:
            if topic.first_ms is not None and self.clock() < until:
                with self._logged_errors(topic.topic):
                    table, progress = self._table(topic), known.get(topic.topic)
                    look = CompleteWindows.look(table, topic.windows, topic.first_ms, progress)
                    looks |= {topic.topic: look} if look else {}
        return looks

    def _reports(self, look: CompleteWindows, due: Sequence[int], until: float) -> Sequence[WindowReport]:
        """The reports of the first of the due windows: as many as there is time for.

        Each portion is twice as large as the one before it, so a tick that is nearly over takes no long one.
        """
        reports: list[WindowReport] = []
        while len(reports) < len(due) and self.clock() < until:
            done = len(reports)
            with self._logged_errors(str(look.table.where.topic)):
                reports += look.reports(due[done : 2 * done + 1])
            if len(reports) == done:
                break
        return reports

    def _counted(self, look: CompleteWindows, reports: Sequence[WindowReport]) -> Mapping[int, CountedWindow]:
        """What producers counted in the reported windows, by their start; nothing if the topic has no usable counts."""
        topic = str(look.table.where.topic)
        audit = Audit.of(self.penstock.settings(), self.storage.cluster, topic)
        times = look.snapshot.entry.event_time if look.snapshot.entry else None
        if audit is not None and times is not None and reports:
            windows = sorted((report.start_ms, look.windows.end_of(report.start_ms)) for report in reports)
            with self._logged_errors(topic):
                return audit.counted(topic, windows, times.lateness_ms)
        return {}

    @contextmanager
    def _logged_errors(self, topic: str) -> Iterator[None]:
        """A table that cannot be read does not affect the reports of the others."""
        try:
            yield
        except LoadError as error:
            self.context.log.warning("%s: %s", topic, error)


def _shared(due: Mapping[str, Sequence[int]], limit: int) -> dict[str, Sequence[int]]:
    """At most `limit` of all windows: no topic gets more than another one that has as many."""
    shares: dict[str, Sequence[int]] = {}
    for number, name in enumerate(sorted(due, key=lambda name: len(due[name]))):
        shares[name] = due[name][: limit // (len(due) - number)]
        limit -= len(shares[name])
    return shares


def event_of(
    topic: TopicWindows, report: WindowReport, counted: CountedWindow | None = None
) -> dg.AssetMaterialization:
    """The event that shows a complete hour or day as materialized, with what producers counted in it."""
    return dg.AssetMaterialization(
        asset_key=topic.key,
        partition=topic.windows.key(report.start_ms),
        metadata={
            "dagster/partition_row_count": report.rows,
            "late_rows": report.late_rows,
            "table_version": report.version,
            "valid_through": dg.MetadataValue.timestamp(report.valid_through_ms / 1000),
            **(_audit_metadata(report.rows, counted) if counted else {}),
        },
    )


def _audit_metadata(rows: int, counted: CountedWindow) -> Mapping[str, dg.MetadataValue]:
    """The comparison of an hour or day with the counts. Without a counted record, there is no share."""
    share = {"audited_share": dg.MetadataValue.float(rows / counted.records)} if counted.records else {}
    return {
        "audited_records": dg.MetadataValue.int(counted.records),
        **share,
        "audited_difference": dg.MetadataValue.int(counted.records - rows),
        "audited_all_counts": dg.MetadataValue.bool(counted.has_all_counts),
    }


def on_complete_partitions() -> dg.AutomationCondition[Any]:
    """Requests each partition of an asset when the partitions that it depends on are complete, and after late rows.

    `AutomationCondition.eager()` looks only at the latest partition. So it misses all but one of several hours that
    become complete at once, and late rows of every earlier hour. It also forgets late rows that are reported while a
    run of their partition is in progress. This condition looks at all partitions, and requests such a partition again
    when the run has ended. Partitions that were complete before the asset got the condition are not requested: a
    backfill makes them.
    """
    condition = dg.AutomationCondition
    requested = condition.newly_requested() | condition.initial_evaluation()
    return (
        # With `updated.since(requested)`, an update that comes together with the request would be forgotten.
        ~requested.since(condition.any_deps_updated()).with_label("requested_since_any_deps_updated")
        & ~condition.any_deps_missing()
        & ~condition.any_deps_in_progress()
        & ~condition.in_progress()
    ).with_label("on_complete_partitions")
