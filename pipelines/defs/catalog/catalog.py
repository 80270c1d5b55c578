"""The catalog: from the settings and the known topics to asset specs, and the names of everything else in Dagster."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import dagster as dg

from pipelines.defs.catalog.checks import checks_of
from pipelines.defs.catalog.known_topics import KnownTopics
from pipelines.defs.catalog.table_facts import TableInputs
from pipelines.defs.catalog.topic_keys import identifier, key_name
from pipelines.defs.catalog.translator import GONE, NOT_ALLOWED, STATE_TAG, PenstockTranslator, TopicProps
from pipelines.ledger.table_routes import TableRoutes
from resources.penstock import PenstockResource
from resources.settings.schedules import matches
from resources.settings.settings import Settings
from resources.stores.lake import Lake
from resources.table_names import route_of, table_name, topic_of

DEFAULT_NAME = "penstock"
MAX_TABLES_PER_ASSETS = 1000
"""A run pays for all outputs of its op, so the tables of a larger schedule are in several multi-assets."""


@dataclass(frozen=True, kw_only=True)
class Catalog:
    """Everything from which definitions are built.

    Args:
        name: the name of these definitions; several can be in one code location.
        source: opens clusters, the lake and Spark in runs and ticks.
        settings: the settings as they were when definitions were built.
        known: the topics of each cluster that the instance knew then.
        patterns: regular expressions of topics that belong to these definitions; None for all.
        key_prefix: the first parts of the keys of tables.
        translator: makes the specs.
        automation_condition: the condition of assets whose translator gives them none.
    """

    name: str = DEFAULT_NAME
    source: PenstockResource
    settings: Settings
    known: Mapping[str, KnownTopics] = field(default_factory=dict)
    patterns: tuple[str, ...] | None = None
    key_prefix: tuple[str, ...] = ("lake",)
    translator: PenstockTranslator = field(default_factory=PenstockTranslator)
    automation_condition: dg.AutomationCondition[dg.AssetKey] | None = None

    def takes(self, topic: str) -> bool:
        """Whether a topic with this name belongs to these definitions."""
        return self.patterns is None or matches(self.patterns, topic)

    def names(self, cluster: str) -> list[str]:
        """The known topics of a cluster that belong to these definitions, in the order of their addition."""
        return [name for name in self.known.get(cluster, KnownTopics()).names if self.takes(name)]

    def tables(self, topic: str) -> list[str]:
        """The names of the tables of a topic, also of one that is not known yet; its own comes first."""
        return TableRoutes.of(self.settings.options_of(topic).tables).table_names(topic)

    def props(self, cluster: str, topic: str, route: str = "") -> TopicProps:
        """The properties of a table of a topic for the translator. The table need not exist yet."""
        name = table_name(topic, route)
        return TopicProps(
            cluster=cluster,
            name=topic,
            route=route,
            schedule=self.settings.schedule_of(cluster, topic),
            settings=self.settings.options_of(name),
            table=self._lake.table_uri(cluster, name),
            table_format=self._lake.formats.of(cluster, name),
            state=self._state(cluster, topic),
            key_prefix=self.key_prefix,
            source_prefix=("kafka",) if self.name == DEFAULT_NAME else ("kafka", self.name),
        )

    def _state(self, cluster: str, topic: str) -> str:
        if not self.settings.rules(cluster).allows(topic):
            return NOT_ALLOWED
        return GONE if topic in self.known.get(cluster, KnownTopics()).deleted else ""

    @cached_property
    def _lake(self) -> Lake:
        return Lake.of(self.settings)

    def spec(self, props: TopicProps) -> dg.AssetSpec:
        """The spec of the asset of a table: what the translator makes, with what runs need."""
        spec = self._translated(props)
        state = {STATE_TAG: props.state} if props.state else {}
        return spec.replace_attributes(
            skippable=True,
            tags={**spec.tags, **state},
            code_version=spec.code_version or _digest(props.settings.format.model_dump_json()),
            automation_condition=None if state else spec.automation_condition or self.automation_condition,
        )

    def _translated(self, props: TopicProps) -> dg.AssetSpec:
        """The asset that the translator makes. If it ignores the route, its key gets the route as the last part."""
        spec = self.translator.get_asset_spec(props)
        if props.route and spec.key == self.key(props.cluster, props.name):
            spec = spec.replace_attributes(key=[*spec.key.path, key_name(props.route)])
        return spec

    def key(self, cluster: str, table: str) -> dg.AssetKey:
        """The key of the asset of a table, also of one that is not known yet."""
        return self._translated(self.props(cluster, topic_of(table), route_of(table))).key

    @property
    def io_key(self) -> str:
        """The key of the IO manager of the tables, which no resource of a project has."""
        return f"{self.name}_tables"

    @cached_property
    def resources(self) -> dict[str, dg.IOManagerDefinition]:
        """The IO manager by its key. Dagster wants the same object in all assets."""
        return {self.io_key: dg.IOManagerDefinition.hardcoded_io_manager(TableInputs(self._lake))}

    @property
    def suffix(self) -> str:
        """What ends the names of jobs, schedules and sensors, so that several definitions can be in one location."""
        return "" if self.name == DEFAULT_NAME else f"__{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSchedule:
    """A schedule of the settings for one cluster: the known topics that it loads, with the keys of their tables.

    Args:
        catalog: the catalog to which it belongs.
        cluster: the name of the cluster in the settings.
        name: its own name in the settings; `topics` for all topics that no section takes.
        tables: the names of the tables of each topic; its own comes first.
        specs: the specs of the tables, by their names.
    """

    catalog: Catalog
    cluster: str
    name: str
    tables: Mapping[str, Sequence[str]]
    specs: Mapping[str, dg.AssetSpec]

    @property
    def topics(self) -> dict[dg.AssetKey, str]:
        """The topics of the schedule, by the keys of their tables."""
        return {self.specs[table].key: topic for topic, tables in self.tables.items() for table in tables}

    def key(self, table: str) -> dg.AssetKey:
        """The key of a table, also of one that is not known yet."""
        return self.specs[table].key if table in self.specs else self.catalog.key(self.cluster, table)

    def keys(self, topics: Iterable[str]) -> list[dg.AssetKey]:
        """The keys of all tables of some topics, also of those that are not known yet."""
        tables = (self.tables.get(topic) or self.catalog.tables(topic) for topic in topics)
        return [self.key(table) for of_topic in tables for table in of_topic]

    def props(self, table: str) -> TopicProps:
        """The properties of a table that the translator got."""
        return self.catalog.props(self.cluster, topic_of(table), route_of(table))

    def checks(self, table: str) -> list[str]:
        """The names of the checks of a table. What is about the topic is checked with its own table."""
        settings = self.catalog.settings
        limits, is_own = settings.timing_of(self.name).limits, not route_of(table)
        return checks_of(is_typed=settings.format_of(table).is_typed, is_own=is_own, limits=limits)

    def named(self, action: str) -> str:
        """The name of a job, and of what starts it, for an action such as `load`."""
        return f"{action}__{identifier(self.cluster)}__{identifier(self.name)}{self.catalog.suffix}"

    def op(self, action: str) -> str:
        """The name of an op of the schedule, which no op of the user has."""
        return f"{identifier(self.catalog.name)}_{action}__{identifier(self.cluster)}__{identifier(self.name)}"

    def buckets(self) -> Iterator[tuple[str, Sequence[str]]]:
        """The tables of each multi-asset, with the end of its name: empty if one is enough.

        All tables of a topic are in the same one, because a run loads them together. Topics whose keys give the same
        names of outputs, such as `a-b` and `a_b`, are in different multi-assets.
        """
        count = -(-len(self.specs) // MAX_TABLES_PER_ASSETS)
        buckets: dict[tuple[int, int], list[str]] = {}
        seen: dict[str, int] = {}
        for topic, tables in self.tables.items():
            names = [self.specs[table].key.to_python_identifier() for table in tables]
            twin = max(seen.get(name, -1) for name in names) + 1
            seen |= dict.fromkeys(names, twin)
            part = int(_digest(topic), 16) % count if count > 1 else 0
            buckets.setdefault((part, twin), []).extend(tables)
        for (part, twin), of_bucket in buckets.items():
            yield (f"__{part}" if count > 1 else "") + (f"__twins_{twin}" if twin else ""), of_bucket


def topic_schedules(catalog: Catalog) -> Iterator[TopicSchedule]:
    """The schedules of all clusters, with the known topics."""
    settings = catalog.settings
    for cluster in sorted(settings.clusters):
        known = [catalog.props(cluster, topic) for topic in catalog.names(cluster)]
        for name in settings.schedules_of(cluster):
            own = [topic for topic in known if topic.schedule == name]
            tables = {topic.name: TableRoutes.of(topic.settings.tables).table_names(topic.name) for topic in own}
            specs = {topic.name: catalog.spec(topic) for topic in own}
            for topic, (_, *others) in tables.items():
                specs |= {table: catalog.spec(catalog.props(cluster, topic, route_of(table))) for table in others}
            yield TopicSchedule(catalog=catalog, cluster=cluster, name=name, tables=tables, specs=specs)


def source_specs(schedule: TopicSchedule) -> list[dg.AssetSpec]:
    """The specs of the Kafka topics of a schedule: external assets, from which the tables are loaded.

    Dagster's graph shows only the last part of a key, which is the name of the topic for the table as well. So topics
    are in a group of their own, whose name the graph shows around them (fault F17).
    """
    return [
        dg.AssetSpec(
            schedule.catalog.props(schedule.cluster, topic).source_key,
            group_name=f"kafka_{group}" if (group := schedule.specs[topic].group_name) else "kafka",
            kinds={"kafka"},
            description=f"The topic {topic} in the Kafka cluster {schedule.cluster}.",
            metadata={"penstock/topic": topic, "penstock/cluster": schedule.cluster},
        )
        for topic in schedule.tables
    ]


def cluster_named(catalog: Catalog, action: str, cluster: str) -> str:
    """The name of a definition that exists once per cluster."""
    return f"{action}__{identifier(cluster)}{catalog.suffix}"


def job_of(op: dg.OpDefinition, name: str, description: str, tags: Mapping[str, str] | None = None) -> dg.JobDefinition:
    """A job of one op. Runs execute in one process."""
    graph = dg.GraphDefinition(name=name, description=description, node_defs=[op])
    return graph.to_job(executor_def=dg.in_process_executor, tags=tags)


def pool_of(cluster: str) -> str:
    """The pool that limits how many runs load from the cluster at once."""
    return f"kafka_{identifier(cluster)}"


def watch_pool_of(cluster: str) -> str:
    """The pool of the runs that only look at the cluster: they never wait behind loads."""
    return f"kafka_{identifier(cluster)}_watch"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]
