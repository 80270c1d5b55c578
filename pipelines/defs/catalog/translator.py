"""Translates topics into asset specs. A subclass of a user chooses other keys, asset groups, tags or descriptions."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from warnings import warn

import dagster as dg

from pipelines.defs.catalog.topic_keys import key_name
from resources.settings.schedules import REST
from resources.settings.topic_options import DEFAULT_TOPIC, TopicOptions
from resources.stores.table_catalog import table_identifier
from resources.table_formats import TableFormat
from resources.table_names import table_name

GONE, NOT_ALLOWED = "gone", "not_allowed"
"""States of topics that are loaded no more: the cluster has the topic no longer, or the settings do not allow it."""
STATE_TAG = "penstock/state"


KIND_OF: Mapping[TableFormat, str] = {"delta": "deltalake", "iceberg": "iceberg"}
"""Dagster's word for the format of a table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicProps:
    """A topic, as a translator sees it.

    Args:
        cluster: the name of its cluster in the settings.
        name: its exact name.
        route: empty for the topic's own table; `orders` for its further table `events/orders`.
        schedule: the name of its schedule in the settings; `topics` if no section takes it.
        settings: the section `[topics.NAME]` of the topic or of its table, or the defaults.
        table: the URI of the table.
        table_format: the format of the table.
        state: empty for a topic that is loaded; otherwise `gone` or `not_allowed`.
        key_prefix: the first parts of the key of its asset.
        source_prefix: the first parts of the key of the Kafka topic.
    """

    cluster: str
    name: str
    route: str = ""
    schedule: str = REST
    settings: TopicOptions = DEFAULT_TOPIC
    table: str = ""
    table_format: TableFormat = "delta"
    state: str = ""
    key_prefix: tuple[str, ...] = ("lake",)
    source_prefix: tuple[str, ...] = ("kafka",)

    @property
    def group(self) -> str:
        """The name that `schedule` had before."""
        warn("the `group` of a topic is its `schedule` now; use that name", FutureWarning, stacklevel=2)
        return self.schedule

    @property
    def has_several_tables(self) -> bool:
        """Whether the topic has several tables, which a run loads together."""
        return bool(self.route) or self.settings.tables is not None

    @property
    def table_name(self) -> str:
        """The name of the table: that of the topic, or `events/orders`."""
        return table_name(self.name, self.route)

    @property
    def name_for_readers(self) -> str:
        """The name by which query engines find the table: its URI, or its name in the catalog of Iceberg tables."""
        is_named = self.table_format == "iceberg"
        return ".".join(table_identifier(self.cluster, self.table_name)) if is_named else self.table

    @property
    def metadata(self) -> Mapping[str, str]:
        """The metadata of every asset that belongs to the table."""
        table = {"penstock/table": self.table_name} if self.route else {}
        return {"penstock/topic": self.name, "penstock/cluster": self.cluster, **table}

    @property
    def source_key(self) -> dg.AssetKey:
        """The key of the Kafka topic, on which the asset of the table depends."""
        return dg.AssetKey([*self.source_prefix, self.cluster, key_name(self.name)])


@dataclass(frozen=True)
class PenstockTranslator:
    """Makes the asset spec of each topic. A subclass overrides `get_asset_spec` and changes what the base returns.

    Penstock adds what its runs need: the code version, the state of a topic that is loaded no more, and that a run may
    skip the asset. If several tables of one topic get the same key, it adds the route: `lake/main/events/orders`.
    """

    extra_tags: Mapping[str, str] = field(default_factory=dict)

    def get_asset_spec(self, topic: TopicProps) -> dg.AssetSpec:
        """The spec of the asset that is the topic's table, or one of its tables.

        Args:
            topic: the topic, the route of the table, and its settings.
        """
        catalog = topic.settings.catalog
        return dg.AssetSpec(
            key=[*topic.key_prefix, topic.cluster, key_name(topic.name)],
            deps=[topic.source_key],
            group_name=catalog.asset_group or default_asset_group(topic),
            owners=list(catalog.owners),
            tags={**self.extra_tags, **catalog.tags},
            description=catalog.description or _description(topic),
            kinds={"kafka", KIND_OF[topic.table_format]},  # most loads are too small for Spark
            automation_condition=condition_of(catalog.automation),
            freshness_policy=_freshness_policy(catalog.freshness_minutes),
            metadata={
                # Dagster takes tables with the same name, in lower-case letters, for one table (fault E18).
                "dagster/table_name": topic.name_for_readers,
                "dagster/uri": topic.table,
                **topic.metadata,
                "penstock/format": topic.settings.format.format,
            },
        )


def _description(topic: TopicProps) -> str:
    of_format = f"The {topic.table_format.capitalize()} table"
    table = f"{of_format} {topic.table_name} of" if topic.route else f"{of_format} of"
    several = " A run that loads it also loads all other tables of the topic." if topic.has_several_tables else ""
    return f"{table} the Kafka topic {topic.name}.{several}"


def default_asset_group(topic: TopicProps) -> str:
    """The asset group of a topic: its cluster, and its schedule if the settings name one."""
    name = topic.cluster if topic.schedule == REST else f"{topic.cluster}__{topic.schedule}"
    return name.replace("-", "_")


def condition_of(text: str | None) -> Any:
    """The automation condition of a setting: `eager`, `on_cron: 0 * * * *`, or none.

    Raises:
        dagster.DagsterInvalidDefinitionError: the cron expression is invalid.
    """
    if not text or text == "none":
        return None
    if text == "eager":
        return dg.AutomationCondition.eager()
    return dg.AutomationCondition.on_cron(text.removeprefix("on_cron:").strip())


def _freshness_policy(minutes: float | None) -> dg.FreshnessPolicy | None:
    return None if minutes is None else dg.FreshnessPolicy.time_window(fail_window=timedelta(minutes=minutes))
