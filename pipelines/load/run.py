"""What one run loads with: a cluster, the tables and settings of its topics, and what the user asked for."""

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Protocol, Self

from kafka_io.cluster.cluster import Cluster
from kafka_io.schema_registry.client import SchemaRegistry
from pipelines.fetch.decode_plan import layout_of
from pipelines.fetch.fetch_runner import FetchRunner
from pipelines.fetch.slice_fetcher import SliceFetcher
from pipelines.formats.tables import lake_table
from pipelines.load.sharing import once
from pipelines.plan.window import LoadWindow
from pipelines.table.lake_table import LakeTable
from pipelines.table.table_store import TableStore
from resources.extras import has_extra
from resources.kafka import open_schema_registry
from resources.settings.choices import Choices
from resources.settings.rules.topic_tables import TopicTables
from resources.settings.settings import Settings, Start
from resources.settings.topic_formats import TopicFormat
from resources.stores.lake import Lake

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ALL_NEW = LoadWindow()


class Tables(Protocol):
    """The tables of the topics of one cluster."""

    def of(self, topic: str) -> TableStore:
        """The table of a topic. It may not exist yet."""


class LoadSettings(Protocol):
    """What the settings say about the topics of one cluster."""

    @property
    def start(self) -> Start:
        """Where a new table begins, if the user does not say."""

    def format_of(self, topic: str) -> TopicFormat:
        """The format of a topic."""

    def tables_of(self, topic: str) -> TopicTables | None:
        """The settings of the further tables of a topic; None if it has none."""

    def open_registry(self, name: str) -> SchemaRegistry:
        """The client of a schema registry."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run over topics of a cluster.

    Args:
        cluster: the cluster.
        tables: the tables of its topics.
        topics: the settings of its topics.
        fetcher: fetches slices.
        choices: how to continue where the cursor and the log are inconsistent.
        window: the part of the logs to load.
        id: the run's id in the ledger.
        now: the time, in UTC.
    """

    cluster: Cluster
    tables: Tables
    topics: LoadSettings
    fetcher: SliceFetcher
    choices: Choices = field(default_factory=Choices)
    window: LoadWindow = ALL_NEW
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    now: Callable[[], datetime] = lambda: datetime.now(UTC)

    @classmethod
    def of(
        cls,
        settings: Settings,
        cluster: Cluster,
        lake: Lake,
        spark: Callable[[], "SparkSession"],
        *,
        choices: Choices | None = None,
        window: LoadWindow = ALL_NEW,
        run_id: str | None = None,
    ) -> Self:
        """A run with the values of the settings. The first load that needs more than one Spark task starts Spark."""
        # Without the package, one process loads everything, step by step. Settings for Spark ask for it.
        runner = FetchRunner(once(spark) if has_extra("spark") or settings.spark else None)
        return cls(
            cluster=cluster,
            tables=_LakeTables(lake, cluster.name, settings),
            topics=_LoadSettings(settings, cluster.name),
            fetcher=SliceFetcher(
                cluster=cluster,
                runner=runner,
                caps=settings.caps,
                options=lake.options,
                parquet_codec=settings.parquet_codec,
            ),
            choices=settings.choices_of(cluster.name) if choices is None else choices,
            window=window,
            id=run_id or uuid.uuid4().hex,
        )


@dataclass(frozen=True, slots=True)
class _LakeTables(Tables):
    """The tables in a lake; see Tables."""

    lake: Lake
    cluster: str
    settings: Settings

    def of(self, topic: str) -> LakeTable:
        return lake_table(self.lake, self.cluster, topic, layout_of(self.settings.format_of(topic)))


class _LoadSettings:
    """The settings file; see LoadSettings."""

    def __init__(self, settings: Settings, cluster: str) -> None:
        self.start = settings.start_of(cluster)
        self.format_of = settings.format_of
        self.tables_of = lambda topic: settings.options_of(topic).tables
        self.open_registry = once(partial(open_schema_registry, settings, waits=True))
