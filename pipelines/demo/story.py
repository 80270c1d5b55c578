"""The acts of the demo: publish, discover, load, publish more with a new field, load only that, verify, query."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any

import dagster as dg
import pyarrow as pa
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from kafka_io.producer.publishing import publish_values
from pipelines.cli.output import console
from pipelines.demo.data import (
    BROKEN,
    FLIGHTS,
    FLIGHTS_WITH_AIRLINE,
    a_year_later,
    avro_values,
    json_values,
    register,
    rows_of,
    with_airline,
    with_broken_records,
)
from pipelines.demo.state import CLUSTER, DemoState
from pipelines.demo.steps import ask, chapter, discover, load, out
from pipelines.formats.tables import lake_table
from pipelines.rewrites.topic_schema import ShownColumn, topic_schema
from pipelines.verify.verify import verify
from resources.kafka import open_producer
from resources.printed import printed
from resources.settings.settings import Settings
from resources.stores.lake import Lake

TOPICS = ("flights", "weather")
CODECS = ("gzip", "snappy", "none")
_BATCH = 400
_QUESTIONS = {
    "Which carriers had the longest delays from New York in 2013?": """\
SELECT carrier, count(*) AS flights, round(avg(dep_delay), 1) AS minutes_late
FROM flights WHERE year = 2013 AND dep_delay IS NOT NULL
GROUP BY carrier ORDER BY minutes_late DESC LIMIT 5""",
    "Which months had the strongest wind?": """\
SELECT month, count(*) AS reports, round(avg(wind_speed), 1) AS miles_per_hour
FROM weather WHERE wind_speed IS NOT NULL
GROUP BY month ORDER BY miles_per_hour DESC LIMIT 3""",
    "Which airlines fly most? (The field is new: it is null in the flights of 2013.)": """\
SELECT airline, count(*) AS flights, min(time_hour)::DATE AS first_day
FROM flights WHERE _error IS NULL
GROUP BY airline ORDER BY flights DESC LIMIT 4""",
    "Which records did not decode? (Their rows have the reason in _error, and their bytes in _raw.)": """\
SELECT _kafka_broker AS broker, _kafka_partition AS partition, _kafka_offset AS "offset",
       octet_length(_raw) AS bytes, _error AS reason
FROM flights WHERE _error IS NOT NULL ORDER BY ALL""",
}
"""The queries at the end of the demo, each with the question that it answers."""


def run_story(state: DemoState, instance: dg.DagsterInstance) -> bool:
    """Run all acts on running servers, and return whether every table was proven and is complete."""
    settings = Settings.load(state.settings)
    lake = Lake.of(settings)
    rows = {topic: rows_of(topic) for topic in TOPICS}
    with chapter("Publishing flights as Avro and weather as JSON, alternately with gzip, with snappy and uncompressed"):
        values = {
            "flights": _as_avro(settings, rows["flights"], FLIGHTS),
            "weather": json_values(rows["weather"]),
        }
        _publish(settings, values)
    with chapter("Dagster's sensor finds the topics"):
        keys = discover(state, instance, CLUSTER)
    with chapter("The requested run loads both topics with Spark (the JVM starts first)"):
        load(state, instance, CLUSTER, keys)
        columns = _columns(settings, lake)
    with chapter("Two days of 2014 arrive: flights have a new field, airline, and ten records are broken"):
        next_year_rows = {topic: a_year_later(rows[topic]) for topic in TOPICS}
        flights = _as_avro(settings, with_airline(next_year_rows["flights"]), FLIGHTS_WITH_AIRLINE)
        new_values = {"flights": with_broken_records(flights), "weather": json_values(next_year_rows["weather"])}
        _publish(settings, new_values)
    with chapter("A second run loads only the new messages"):
        load(state, instance, CLUSTER, keys)
        _print_new_columns(columns, _columns(settings, lake))
    with chapter("penstock verify: is every committed offset in the table exactly once?"):
        proofs = [verify(lake_table(lake, CLUSTER, topic)) for topic in TOPICS]
        console.proofs(printed(proofs))
    with chapter("DuckDB queries the tables: flights is a Delta table, and weather an Iceberg table in a catalog"):
        bad = len(ask(lake, {topic: lake.table_uri(CLUSTER, topic) for topic in TOPICS}, _QUESTIONS))
    published = {topic: len(values[topic]) + len(new_values[topic]) for topic in TOPICS}
    loaded = {proof.topic: sum(partition.rows for partition in proof.partitions) for proof in proofs}
    for topic in TOPICS:
        out.print(f"  {topic}: {published[topic]:,} published, {loaded[topic]:,} in the table")
    return all(proof.proven for proof in proofs) and published == loaded and bad == BROKEN


def _as_avro(settings: Settings, flights: pa.Table, schema: Mapping[str, Any]) -> list[bytes]:
    schema_id = register(settings.registries[CLUSTER].url, "flights-value", schema)
    out.print(
        f"  flights: the schema with {len(schema['fields'])} fields is in the schema registry, with the id {schema_id}"
    )
    return avro_values(flights, schema, schema_id)


def _publish(settings: Settings, data: Mapping[str, Sequence[bytes]]) -> None:
    columns = (TextColumn("  {task.description:<8}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with ExitStack() as opened:
        producers = [opened.enter_context(open_producer(settings, CLUSTER, compression=codec)) for codec in CODECS]
        bars = opened.enter_context(Progress(*columns, console=out))
        for topic, rows in data.items():
            publish_values(producers, topic, bars.track(rows, description=topic), batch_size=_BATCH)


def _columns(settings: Settings, lake: Lake) -> dict[str, tuple[ShownColumn, ...]]:
    """The columns for the fields of the values, by topic: what `penstock schema` shows."""
    tables = {topic: lake_table(lake, CLUSTER, topic) for topic in TOPICS}
    return {topic: topic_schema(table, settings.format_of(topic)).columns for topic, table in tables.items()}


def _print_new_columns(before: Mapping[str, Sequence[ShownColumn]], after: Mapping[str, Sequence[ShownColumn]]) -> None:
    for topic in TOPICS:
        for column in set(after[topic]) - set(before[topic]):
            out.print(f"  {topic}: new column {column.name} ({column.type}): {column.comment}")
