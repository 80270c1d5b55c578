"""What the chapters of the demo have in common: a tick of a sensor, a run of Dagster, and questions to DuckDB."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from textwrap import indent
from typing import Any

import dagster as dg
import duckdb
from rich.console import Console

from pipelines.cli.output.printed_table import print_table
from pipelines.defs.build import build_defs
from pipelines.demo.state import DemoState
from pipelines.formats.tables import native_table
from resources.quantities import run_time
from resources.stores.lake import Lake

QUIET: dict[str, Any] = {"loggers": {"console": {"config": {"log_level": "ERROR"}}}}
"""The config of a run that prints only errors."""
out = Console(highlight=False)
_MAX_TICKS = 5


@contextmanager
def chapter(title: str) -> Iterator[None]:
    """Print the title of a chapter, and how long the chapter took."""
    out.print(f"\n[bold]{title}[/]", soft_wrap=True)
    began = time.monotonic()
    yield
    out.print(f"[dim]  {run_time(time.monotonic() - began)}[/]")


def tick(state: DemoState, instance: dg.DagsterInstance, sensor: str, cursor: str | None) -> Any:
    """Evaluate a tick of a sensor, as the daemon does, with new definitions: the tick before may have added topics."""
    defs = build_defs(state.settings)
    definition = defs.resolve_sensor_def(sensor)
    with dg.build_sensor_context(instance=instance, definitions=defs, cursor=cursor) as context:
        return definition.evaluate_tick(context)


def discover(state: DemoState, instance: dg.DagsterInstance, cluster: str) -> list[dg.AssetKey]:
    """Evaluate ticks of the sensor for new topics until it requests a run, and return the assets of the run."""
    cursor = None
    for _ in range(_MAX_TICKS):
        result = tick(state, instance, f"new_topics__{cluster}", cursor)
        cursor = result.cursor
        for request in result.run_requests or []:
            keys = list(request.asset_selection or [])
            out.print(f"  new assets: {', '.join(key.to_user_string() for key in keys)}")
            return keys
        out.print(f"  {result.skip_message}")
    raise RuntimeError("the sensor found no topic")


def load(
    state: DemoState,
    instance: dg.DagsterInstance,
    cluster: str,
    keys: Sequence[dg.AssetKey],
    tags: Mapping[str, str] | None = None,
) -> None:
    """Load the topics of these assets with a run in this process, and print what it has loaded."""
    group_job = build_defs(state.settings).resolve_job_def(f"load__{cluster}__topics")
    job = group_job.get_subset(asset_selection=set(keys), asset_check_selection=set())
    with out.status("  loading ..."):
        result = job.execute_in_process(instance=instance, run_config=QUIET, tags=tags)
    materializations = [event.materialization for event in result.get_asset_materialization_events()]
    names = ("rows", "bytes", "files", "bad_records", "rows_per_second")
    records = [
        {"topic": loaded.asset_key.path[-1], **{name: round(loaded.metadata[name].value) for name in names}}  # type: ignore[arg-type] # they are numbers
        for loaded in materializations
    ]
    print_table("topic >rows >bytes >files >bad_records >rows_per_second:ROWS/S", records)
    for loaded in materializations:
        if "warnings" in loaded.metadata:
            out.print(f"  {loaded.asset_key.path[-1]}: {loaded.metadata['warnings'].value}", soft_wrap=True)


def ask(lake: Lake, tables: Mapping[str, str], questions: Mapping[str, str]) -> list[dict[str, Any]]:
    """Let DuckDB answer questions, each with its query, and return the last answer.

    It finds the files of a Delta table by its log, and those of an Iceberg table by its name in the catalog.

    Args:
        lake: the lake.
        tables: the URIs of the tables, by the names that the queries use.
        questions: the queries, by what they answer.
    """
    answers: list[dict[str, Any]] = []
    with duckdb.connect() as database:
        for name, uri in tables.items():
            table: Any = native_table(lake, uri)
            if lake.iceberg_place(uri) is None:
                database.register(name, table.to_pyarrow_dataset())
            else:
                table.scan().to_duckdb(name, connection=database)
        for question, query in questions.items():
            out.print(f"\n  [italic]{question}[/]\n[dim]{indent(query, '    ')}[/]", soft_wrap=True)
            answer = database.execute(query)
            names = [str(column[0]) for column in answer.description or []]
            answers = [dict(zip(names, row, strict=True)) for row in answer.fetchall()]
            print_table(" ".join(names), answers, unknown="null")
    return answers
