"""An asset whose function gets the new rows of a topic's table, and whose rows are in an output exactly once.

    @increment_asset(source="main/clicks", into=DeltaOutput(uri="lake/sizes"))
    def sizes(rows: pa.RecordBatchReader) -> pa.Table: ...

A run that is killed, repeated, or started twice at once does no harm: see pipelines/increments. So the asset needs no
partitions, and no run is lost if a sensor or an automation condition requests several.
"""

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack

import dagster as dg

from pipelines.defs.build import SettingsSource, resource_of
from pipelines.defs.catalog.topic_keys import key_name
from pipelines.formats.tables import lake_table
from pipelines.increments.delta_output import DeltaOutput
from pipelines.increments.increment import Increment, OnReplaced, OnRetired, apply_increment
from pipelines.increments.output import IncrementOutput, NamedOutput
from pipelines.reports.lineage_events import DatasetName
from pipelines.reports.lineage_jobs import JobLineage, JobReport
from resources.errors import LoadError
from resources.explanations.codes import code_of, coded
from resources.penstock import PenstockResource

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

AssetFunction = Callable[..., Any]
"""A function of the rows, or of the rows and their increment, that gives the rows for the output."""
_AND_INCREMENT = 2  # parameters


class ReadOptions(TypedDict, total=False):
    """The options of `increment_asset` that say what its function reads, and what becomes of earlier rows."""

    engine: Literal["arrow", "spark"]
    """Whether the function gets a stream of Arrow batches, which is the default, or a DataFrame of Spark."""
    columns: Sequence[str] | None
    """The columns of the table that the function needs; all by default."""
    on_replaced: OnReplaced
    """What happens if rows were replaced or removed; see `increments`."""
    on_retired: OnRetired
    """What happens if rows were retired before the consumer saw them; see `increments`."""
    removing: Callable[[Increment], str] | None
    """The condition for rows of the output that are replaced; see `increments`."""
    session: "Callable[[], SparkSession] | None"
    """Opens the Spark session; that of the settings by default."""


class IncrementOptions(ReadOptions, total=False):
    """All further options of `increment_asset`: its own, and those of `dagster.AssetSpec`."""

    key: dg.AssetKey | str | Sequence[str]
    deps: Iterable[Any]
    description: str | None
    metadata: Mapping[str, Any] | None
    group_name: str | None
    code_version: str | None
    automation_condition: dg.AutomationCondition[Any] | None
    owners: Sequence[str] | None
    tags: Mapping[str, str] | None
    kinds: set[str] | None
    partitions_def: dg.PartitionsDefinition[Any] | None
    freshness_policy: dg.FreshnessPolicy | None


@dataclass(frozen=True, kw_only=True)
class IncrementAsset:
    """An increment's asset, as each of its runs needs it; see `increment_asset`."""

    cluster: str
    topic: str
    into: IncrementOutput
    consumer: str
    penstock: PenstockResource
    options: ReadOptions

    def run(self, function: AssetFunction, context: dg.AssetExecutionContext) -> Mapping[str, Any] | None:
        """Apply the next increment; returns the facts about it, or None if nothing is new.

        Raises:
            dagster.Failure: it failed. Dagster retries only what can pass.
        """
        penstock, options = self.penstock.fresh(), self.options
        lineage = JobLineage.of(penstock.settings(), self.cluster, run_id=context.run.run_id, warn=context.log.warning)
        try:
            table = lake_table(penstock.lake(), self.cluster, self.topic)
            with lineage.job("INCREMENT", self.topic, DatasetName.of_table(table.uri), self.consumer) as report:
                done = apply_increment(
                    table,
                    partial(self._transformed, function, options.get("session") or penstock.session),
                    consumer=self.consumer,
                    into=self.into,
                    on_replaced=options.get("on_replaced", "apply"),
                    on_retired=options.get("on_retired", "fail"),
                    removing=options.get("removing"),
                )
                if report is not None and done is not None:
                    report.read(done["version"])
                    self._name_output(report)
                return done
        except LoadError as error:
            description = coded(f"{type(error).__name__}: {error.reason}", code_of(type(error)))
            raise dg.Failure(description=description, allow_retries=error.retriable) from error

    def _name_output(self, report: JobReport) -> None:
        """Name the output in the report; an output of another program may have no name."""
        if isinstance(self.into, DeltaOutput):
            report.wrote_table(self.into.uri, options=self.into.options)
        elif isinstance(self.into, NamedOutput):
            report.wrote(self.into.dataset)

    def _transformed(self, function: AssetFunction, session: "Callable[[], SparkSession]", increment: Increment) -> Any:
        columns = self.options.get("columns")
        if self.options.get("engine") == "spark":
            rows: Any = increment.spark(session(), columns)
        else:
            rows = increment.arrow(columns)
        wants_increment = len(inspect.signature(function).parameters) == _AND_INCREMENT
        return function(rows, increment) if wants_increment else function(rows)


def increment_asset(
    *,
    source: str,
    into: IncrementOutput,
    consumer: str | None = None,
    settings: SettingsSource | None = None,
    key_prefix: Sequence[str] = ("lake",),
    **options: Unpack[IncrementOptions],
) -> Callable[[AssetFunction], dg.AssetsDefinition]:
    """A decorator that makes an asset of a function of new rows. A run without new rows materializes nothing.

    Args:
        source: the topic as `cluster/topic`, or one of its tables as `cluster/topic/table`.
        into: where the rows of the function go.
        consumer: the name under which the output keeps the progress; the name of the asset by default.
        settings: the settings, as `build_defs` takes them; the file that the environment names by default.
        key_prefix: the first parts of the key of the topic's asset, as in `build_defs`.
        options: see IncrementOptions; for example `columns`, `group_name` and `automation_condition`.
    """
    cluster, _, topic = source.partition("/")
    of_spec = {name: value for name, value in options.items() if name not in ReadOptions.__annotations__}

    def decorate(function: AssetFunction) -> dg.AssetsDefinition:
        name = function.__name__
        asset = IncrementAsset(
            cluster=cluster,
            topic=topic,
            into=into,
            consumer=consumer or name,
            penstock=PenstockResource() if settings is None else resource_of(settings),
            options=options,
        )
        defaults = {
            "key": name,
            "deps": [dg.AssetKey([*key_prefix, cluster, *map(key_name, topic.split("/"))])],
            "description": inspect.getdoc(function),
        }
        spec = dg.AssetSpec(**{**defaults, **of_spec})  # type: ignore[arg-type] # IncrementOptions has their types

        # Two runs at once are right, but the work of one of them is lost: a limit of 1 for the pool avoids that.
        @dg.multi_asset(name=name, specs=[spec.replace_attributes(skippable=True)], pool=f"increments_{name}")
        def increment(context: dg.AssetExecutionContext) -> Iterator[dg.MaterializeResult[None]]:
            done = asset.run(function, context)
            if done is None:
                context.log.info("nothing is new in %s", source)
            else:
                yield dg.MaterializeResult(asset_key=spec.key, metadata=dict(done))

        return increment

    return decorate
