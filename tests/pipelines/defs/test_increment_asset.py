"""The asset of an increment in real runs of Dagster: materialized when rows are new, with one effect of each row."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import dagster as dg
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from pipelines.defs.increment_asset import increment_asset
from pipelines.increments.delta_output import DeltaOutput
from pipelines.increments.increment import Increment
from pipelines.maintenance.rewind import plan_rewind, rewind
from tests.small_table import SmallTable

Run = Callable[[dg.AssetsDefinition], dg.ExecuteInProcessResult]


@pytest.fixture
def settings(small: SmallTable) -> dict[str, Any]:
    return {"lake": small.lake.root, "clusters": {"main": {"bootstrap": "127.0.0.1:1"}}}


@pytest.fixture
def output(tmp_path: Path) -> DeltaOutput:
    return DeltaOutput(uri=str(tmp_path / "sizes"))


@pytest.fixture
def run(instance: dg.DagsterInstance) -> Run:
    return lambda asset: dg.materialize([asset], instance=instance, raise_on_error=False)


def facts(result: dg.ExecuteInProcessResult) -> dict[str, Any]:
    """The metadata of the materialization of a run; none if the run materialized nothing."""
    assert result.success
    events = result.get_asset_materialization_events()
    return {key: value.value for event in events for key, value in event.materialization.metadata.items()}


def sizes(rows: pa.RecordBatchReader) -> pa.Table:
    """The size of each value."""
    table = rows.read_all()
    return table.append_column("size", pc.binary_length(table.column("value"))).drop_columns("value")


def offsets(output: DeltaOutput) -> list[int]:
    return sorted(DeltaTable(output.uri).to_pyarrow_table().column("_source_offset").to_pylist())


@pytest.mark.slow
def test_each_run_applies_what_is_new(
    run: Run, small: SmallTable, output: DeltaOutput, settings: dict[str, Any]
) -> None:
    asset = increment_asset(source="main/clicks", into=output, settings=settings, columns=["value"])(sizes)
    small.commit(small.write(0, 30))
    assert facts(run(asset)) == {
        "consumer": "sizes",
        "source": "main/clicks",
        "since": -1,
        "version": 1,
        "new": 30,
        "restarted": 0,
        "replaced": 0,
        "taken_back": 0,
        "erased": 0,
    }
    assert facts(run(asset)) == {}
    small.commit(small.write(30, 50))
    assert facts(run(asset))["new"] == 20
    assert offsets(output) == [0, 10, 20, 30, 40]
    rewind(plan_rewind(small.table, 1, run="back"))
    assert facts(run(asset))["taken_back"] == 20
    assert offsets(output) == [0, 10, 20]


def test_the_asset_depends_on_the_asset_of_its_topic(output: DeltaOutput, settings: dict[str, Any]) -> None:
    asset = increment_asset(
        source="main/page views",
        into=output,
        settings=settings,
        group_name="reports",
        automation_condition=dg.AutomationCondition.eager(),
    )(sizes)
    spec = asset.get_asset_spec(dg.AssetKey("sizes"))
    assert [dep.asset_key for dep in spec.deps] == [dg.AssetKey(["lake", "main", "page_x20_views"])]
    assert (spec.group_name, spec.description) == ("reports", "The size of each value.")
    assert spec.automation_condition == dg.AutomationCondition.eager()


@pytest.mark.slow
def test_a_failed_run_is_repeated_without_a_second_effect(
    run: Run, small: SmallTable, output: DeltaOutput, settings: dict[str, Any]
) -> None:
    broken = [True]

    @increment_asset(source="main/clicks", into=output, settings=settings)
    def copies(rows: pa.RecordBatchReader) -> Any:
        if broken.pop():
            raise ZeroDivisionError
        return rows

    small.commit(small.write(0, 30))
    assert not run(copies).success
    broken.append(False)
    assert facts(run(copies))["new"] == 30
    assert offsets(output) == [0, 10, 20]


def test_an_error_with_a_sentence_fails_the_run_with_it(
    run: Run, small: SmallTable, output: DeltaOutput, settings: dict[str, Any]
) -> None:
    small.commit(small.write(0, 30))

    @increment_asset(source="main/clicks", into=output, settings=settings)
    def totals(rows: pa.RecordBatchReader) -> pa.Table:
        return pa.table({"rows": [rows.read_all().num_rows]})

    result = run(totals)
    [event] = [event for event in result.all_events if event.is_step_failure]
    failure = event.step_failure_data.user_failure_data
    assert failure is not None
    assert (failure.description or "").startswith("OutputRefused: the rows have no column _source")


@pytest.mark.slow
def test_a_function_can_ask_for_its_increment(
    run: Run, small: SmallTable, output: DeltaOutput, settings: dict[str, Any]
) -> None:
    def everything(_increment: Increment) -> str:
        return "rows >= 0"

    @increment_asset(source="main/clicks", into=output, settings=settings, removing=everything)
    def totals(_rows: pa.RecordBatchReader, increment: Increment) -> pa.Table:
        return pa.table({"rows": [increment.dataset().count_rows()]})

    for start in (0, 30):
        small.commit(small.write(start, start + 30))
        facts(run(totals))
    assert DeltaTable(output.uri).to_pyarrow_table().to_pylist() == [{"rows": 6}]


@pytest.mark.spark
def test_a_function_can_be_of_spark(
    run: Run, small: SmallTable, output: DeltaOutput, settings: dict[str, Any], spark: SparkSession
) -> None:
    @increment_asset(
        source="main/clicks", into=output, settings=settings, engine="spark", columns=["value"], session=lambda: spark
    )
    def lengths(rows: DataFrame) -> DataFrame:
        return rows.withColumn("length", sf.length("value")).drop("value")

    for start in (0, 30):
        small.commit(small.write(start, start + 30))
        assert facts(run(lengths))["new"] == 30
    assert facts(run(lengths)) == {}
    assert offsets(output) == [0, 10, 20, 30, 40, 50]
