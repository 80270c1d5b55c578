"""Loaders of which a test changes one part: how slices are fetched, the time, the settings of topics, the reports.

The benchmarks use this module in processes whose memory they measure: it imports no pytest.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal, NoReturn

from kafka_io.cluster.cluster import Cluster
from kafka_io.schema_registry.client import SchemaRegistry
from pipelines.fetch.decoding import OpenRegistry, no_registry
from pipelines.fetch.fetch_runner import fetch_here
from pipelines.fetch.fetch_task import FetchTask
from pipelines.fetch.slice_fetcher import SliceFetcher
from pipelines.identity.earlier_loads import Evidence
from pipelines.ledger.slice_facts import SliceFacts
from pipelines.load.load import Loader
from pipelines.load.run import LoadSettings, Run, Tables
from pipelines.reports.last_error import LastError
from pipelines.reports.outcome import TopicLoad
from pipelines.reports.run_reports import Reports
from pipelines.table.table_store import TableStore
from resources.progress import Progress
from resources.settings.rules.topic_tables import TopicTables
from resources.settings.settings import Caps, Settings, Start
from resources.settings.topic_formats import RAW_FORMAT, TopicFormat


def no_spark() -> NoReturn:
    """Stand for a session that a load in this process never asks for."""
    raise AssertionError("a load in this process needs no Spark")


@dataclass
class FunctionRunner:
    """Runs the fetch tasks with a function of a test; see Runner."""

    function: Callable[..., list[SliceFacts]] = fetch_here
    cores: int = 0
    abandoned: Callable[[str], object] = lambda _topic: None

    def fetch(
        self, tasks: Sequence[FetchTask], on_progress: Progress, ahead: Sequence[Sequence[FetchTask]] = ()
    ) -> list[SliceFacts]:
        """See Runner."""
        return self.function(tasks, on_progress, ahead)

    def abandon(self, topic: str) -> None:
        """See Runner."""
        self.abandoned(topic)

    def keeping_readers(self) -> AbstractContextManager[None]:
        """See Runner."""
        return nullcontext()


@dataclass(frozen=True)
class FixedSettings:
    """The same settings for each topic; see LoadSettings."""

    start: Start = "earliest"
    format: TopicFormat = RAW_FORMAT
    registry: OpenRegistry = no_registry

    def format_of(self, _topic: str) -> TopicFormat:
        """See LoadSettings."""
        return self.format

    def tables_of(self, _topic: str) -> None:
        """See LoadSettings."""

    def open_registry(self, name: str) -> SchemaRegistry:
        """See LoadSettings."""
        return self.registry(name)


@dataclass(frozen=True)
class OtherStart:
    """The settings of topics, but for where a new table begins; see LoadSettings."""

    settings: LoadSettings
    start: Start

    def format_of(self, topic: str) -> TopicFormat:
        """See LoadSettings."""
        return self.settings.format_of(topic)

    def tables_of(self, topic: str) -> TopicTables | None:
        """See LoadSettings."""
        return self.settings.tables_of(topic)

    def open_registry(self, name: str) -> SchemaRegistry:
        """See LoadSettings."""
        return self.settings.open_registry(name)


@dataclass(frozen=True)
class OneTable:
    """The same table for each topic; see Tables."""

    table: TableStore

    def of(self, _topic: str) -> TableStore:
        """See Tables."""
        return self.table


@dataclass(frozen=True)
class ChangedReports(Reports):
    """Reports of which a test has its own functions; the others are those of `reports`."""

    reports: Reports
    functions: Mapping["ReportName", Callable[..., Any]]

    def _call(self, name: "ReportName", *arguments: Any) -> Any:
        return (self.functions.get(name) or getattr(self.reports, name))(*arguments)

    def started(self, topic: str, run_id: str) -> Sequence[str]:
        """See Reports."""
        result: Sequence[str] = self._call("started", topic, run_id)
        return result

    def progress(self, topic: str) -> Progress:
        """See Reports."""
        result: Progress = self._call("progress", topic)
        return result

    def committed(self, topic: str, cursors: Any) -> Sequence[str]:
        """See Reports."""
        result: Sequence[str] = self._call("committed", topic, cursors)
        return result

    def held_back(self, topic: str, bounds: Any, now_ms: int) -> Sequence[str]:
        """See Reports."""
        return self.reports.held_back(topic, bounds, now_ms)

    def failed(self, topic: str, error: LastError | None) -> Sequence[str]:
        """See Reports."""
        result: Sequence[str] = self._call("failed", topic, error)
        return result

    def ended(self, load: TopicLoad) -> Sequence[str]:
        """See Reports."""
        result: Sequence[str] = self._call("ended", load)
        return result


ReportName = Literal["started", "progress", "committed", "failed", "ended"]


def changed(
    loader: Loader,
    *,
    fetch: Callable[..., list[SliceFacts]] | None = None,
    cores: int = 0,
    abandon: Callable[[str], object] = lambda _topic: None,
    now: Callable[[], datetime] | None = None,
    start: Start | None = None,
    topics: LoadSettings | None = None,
    tables: Tables | None = None,
    evidence: tuple[Evidence, ...] | None = None,
    reports: Mapping[ReportName, Callable[..., Any]] | None = None,
) -> Loader:
    """The loader with some parts of a test."""
    run = loader.run
    if fetch is not None:
        run = replace(run, fetcher=replace(run.fetcher, runner=FunctionRunner(fetch, cores, abandon)))
    if now is not None:
        run = replace(run, now=now)
    if topics is not None:
        run = replace(run, topics=topics)
    if tables is not None:
        run = replace(run, tables=tables)
    if start is not None:
        run = replace(run, topics=OtherStart(run.topics, start))
    if evidence is not None:
        loader = replace(loader, evidence=evidence)
    if reports is not None:
        loader = replace(loader, reports=ChangedReports(loader.reports, reports))
    return replace(loader, run=run)


_PARTS = ("fetch", "cores", "abandon", "now", "start", "topics", "tables", "evidence", "reports")


def loader_of(settings: Settings, cluster: Cluster, spark: Callable[[], Any] = no_spark, **options: Any) -> Loader:
    """The same as `Loader.of`, with the options of `changed` too."""
    parts = {name: options.pop(name) for name in _PARTS if name in options}
    return changed(Loader.of(settings, cluster, spark, **options), **parts)


def simple_loader(
    cluster: Cluster,
    table: TableStore,
    fetch: Callable[..., list[SliceFacts]],
    *,
    caps: Caps | None = None,
    topics: LoadSettings | None = None,
    abandon: Callable[[str], object] = lambda _topic: None,
    **options: Any,
) -> Loader:
    """A loader of one table without a settings file; `options` are those of Run."""
    fetcher = SliceFetcher(cluster=cluster, runner=FunctionRunner(fetch, abandoned=abandon), caps=caps or Caps())
    run = Run(cluster=cluster, tables=OneTable(table), topics=topics or FixedSettings(), fetcher=fetcher, **options)
    return Loader(run=run)
