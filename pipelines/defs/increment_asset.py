"""An asset whose function gets the new rows of a topic's table, and whose rows are in an output exactly once.

    @increment_asset(source="main/clicks", into=DeltaOutput(uri="lake/sizes"))
    def sizes(rows: pa.RecordBatchReader) -> pa.Table: ...

A run that is killed, repeated, or started twice at once does no harm: see pipelines/increments. So the asset needs no
partitions, and no run is lost if a sensor or an automation condition requests several.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import dagster as dg

from pipelines.defs.build import SettingsSource, resource_of
from pipelines.defs.catalog.topic_keys import key_name
from pipelines.delta.delta_table import LakeTable
from pipelines.increments.delta_output import DeltaOutput
from pipelines.increments.increment import Increment, OnReplaced, apply_increment
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


@dataclass(frozen=True, kw_only=True)
class IncrementAsset:
    """The options of an increment's asset, which each of its runs needs; see `increment_asset`."""

    cluster: str
    topic: str
    into: IncrementOutput
    consumer: str
    penstock: PenstockResource
    engine: Literal["arrow", "spark"] = "arrow"
    columns: Sequence[str] | None = None
    on_replaced: OnReplaced = "apply"
    removing: Callable[[Increment], str] | None = None
    session: "Callable[[], SparkSession] | None" = field(default=None)

    def run(self, function: AssetFunction, context: dg.AssetExecutionContext) -> Mapping[str, Any] | None:
        """Apply the next increment; returns the facts about it, or None if nothing is new.

        Raises:
            dagster.Failure: it failed. Dagster retries only what can pass.
        """
        penstock = self.penstock.fresh()
        lineage = JobLineage.of(penstock.settings(), self.cluster, run_id=context.run.run_id, warn=context.log.warning)
        try:
            table = LakeTable.of(penstock.lake(), self.cluster, self.topic)
            with lineage.job("INCREMENT", self.topic, DatasetName.of_table(table.uri), self.consumer) as report:
                done = apply_increment(
                    table,
                    partial(self._transformed, function, self.session or penstock.session),
                    consumer=self.consumer,
                    into=self.into,
                    on_replaced=self.on_replaced,
                    removing=self.removing,
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
        if self.engine == "spark":
            rows: Any = increment.spark(session(), self.columns)
        else:
            rows = increment.arrow(self.columns)
        wants_increment = len(inspect.signature(function).parameters) == _AND_INCREMENT
        return function(rows, increment) if wants_increment else function(rows)


def increment_asset(
    *,
    source: str,
    into: IncrementOutput,
    consumer: str | None = None,
    settings: SettingsSource | None = None,
    engine: Literal["arrow", "spark"] = "arrow",
    columns: Sequence[str] | None = None,
    on_replaced: OnReplaced = "apply",
    removing: Callable[[Increment], str] | None = None,
    session: "Callable[[], SparkSession] | None" = None,
    key_prefix: Sequence[str] = ("lake",),
    **asset_options: Any,
) -> Callable[[AssetFunction], dg.AssetsDefinition]:
    """A decorator that makes an asset of a function of new rows. A run without new rows materializes nothing.

    Args:
        source: the topic as `cluster/topic`.
        into: where the rows of the function go.
        consumer: the name under which the output keeps the progress; the name of the asset by default.
        settings: the settings, as `build_defs` takes them; the file that the environment names by default.
        engine: whether the function gets a stream of Arrow batches, or a DataFrame of Spark.
        columns: the columns of the table that the function needs; all by default.
        on_replaced: what happens if rows were replaced or removed; see `increments`.
        removing: the condition for rows of the output that are replaced; see `increments`.
        session: opens the Spark session; that of the settings by default.
        key_prefix: the first parts of the key of the topic's asset, as in `build_defs`.
        asset_options: of `dagster.AssetSpec`, for example `group_name` and `automation_condition`.
    """
    cluster, _, topic = source.partition("/")

    def decorate(function: AssetFunction) -> dg.AssetsDefinition:
        name = function.__name__
        asset = IncrementAsset(
            cluster=cluster,
            topic=topic,
            into=into,
            consumer=consumer or name,
            penstock=PenstockResource() if settings is None else resource_of(settings),
            engine=engine,
            columns=columns,
            on_replaced=on_replaced,
            removing=removing,
            session=session,
        )
        defaults = {
            "key": name,
            "deps": [dg.AssetKey([*key_prefix, cluster, key_name(topic)])],
            "description": inspect.getdoc(function),
        }
        return _definition(name, asset, function, dg.AssetSpec(**{**defaults, **asset_options}))

    return decorate


def _definition(name: str, asset: IncrementAsset, function: AssetFunction, spec: dg.AssetSpec) -> dg.AssetsDefinition:
    # Two runs at once are right, but the work of one of them is lost: a limit of 1 for the pool avoids that.
    @dg.multi_asset(name=name, specs=[spec.replace_attributes(skippable=True)], pool=f"increments_{name}")
    def increment(context: dg.AssetExecutionContext) -> Iterator[dg.MaterializeResult[None]]:
        done = asset.run(function, context)
        if done is None:
            context.log.info("nothing is new in %s/%s", asset.cluster, asset.topic)
        else:
            yield dg.MaterializeResult(asset_key=spec.key, metadata=dict(done))

    return increment
