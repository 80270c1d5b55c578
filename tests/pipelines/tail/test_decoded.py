"""`penstock tail` decodes the values of a topic that has a format, as a load does."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from kafka_io.testing.schema_registry.server import EmbeddedSchemaRegistry
from pipelines.cli.main import main
from tests.fakes.cluster import FakeCluster, Log
from tests.fakes.typed import log_of
from tests.pipelines.fetch.test_avro_table import V1, V2, framed, schema
from tests.pipelines.schemas.test_schema_headers import log_of as log_with_headers


def tail(folder: Path, values: Sequence[bytes | None] | Log, format_: str, *arguments: str) -> list[str]:
    """The lines that the command prints of a topic with these values; `format_` is the end of the settings file."""
    with FakeCluster(logs={0: values if isinstance(values, Log) else log_of(values)}) as fake:
        address = ",".join(broker.address for broker in fake.bootstrap)
        file = folder / "penstock.toml"
        file.write_text(f'lake = "lake"\n[clusters.main]\nbootstrap = "{address}"\n[topics.clicks]\n{format_}\n')
        words = ["--settings", str(file), "tail", "clicks", "--from", "earliest", "--until", "latest", *arguments]
        result = CliRunner().invoke(main, words)
    assert (result.exit_code, result.stderr) == (0, "")
    return result.stdout.splitlines()


def values_and_errors(lines: list[str]) -> list[tuple[Any, Any]]:
    return [(record["value"], record.get("error")) for record in map(json.loads, lines)]


DECLARED = (
    'format = "json"\ncolumns = { at = "timestamp", day = "date", amount = "decimal(38, 2)", data = "binary", '
    'share = "double", place = "struct<city: string, codes: array<long>>", tags = "map<string, long>" }'
)


def test_fields_of_all_types_are_json_and_null_fields_are_left_out(tmp_path: Path) -> None:
    value = {
        "at": "2026-01-31T12:00:00Z",
        "day": "2026-01-31",
        "amount": "1.50",
        "data": "/w==",
        "share": 0.5,
        "place": {"city": "Bern", "codes": [1, 2]},
        "tags": {"a": 1},
    }
    values = [json.dumps(value).encode(), b'{"share": 1}', None, b"["]
    [full, small, tombstone, bad] = values_and_errors(tail(tmp_path, values, DECLARED, "--json"))
    shown = {**value, "at": "2026-01-31T12:00:00+00:00", "data": {"base64": "/w=="}}
    assert (full, small, tombstone) == ((shown, None), ({"share": 1.0}, None), (None, None))
    assert bad[0] == "["
    assert bad[1]


def test_people_see_the_fields_as_json_and_the_reason_in_a_field_of_its_own(tmp_path: Path) -> None:
    [good, bad] = tail(tmp_path, [b'{"share": 1, "new": "\\u001b"}', b"[\x1b"], DECLARED)
    assert good.split("\t")[4:] == ['{"share":1.0}']
    value, error = bad.split("\t")[4:]
    assert value == r"[\x1b"
    assert error.startswith("error: ")


def test_raw_values_are_shown_as_without_a_format(tmp_path: Path) -> None:
    assert values_and_errors(tail(tmp_path, [b'{"share": 1}'], DECLARED, "--json", "--raw")) == [('{"share": 1}', None)]


def test_a_text_is_shown_as_it_is_with_the_reason_if_it_is_none(tmp_path: Path) -> None:
    shown = values_and_errors(tail(tmp_path, [b"a", b"\xff"], 'format = "text"', "--json"))
    assert shown == [("a", None), ({"base64": "/w=="}, "the value is not valid UTF-8")]


def test_json_that_nothing_describes_shows_all_its_keys(tmp_path: Path) -> None:
    shown = values_and_errors(tail(tmp_path, [b'{"a": 1}', b'{"b": "x"}'], 'format = "json"', "--json"))
    assert shown == [({"a": 1}, None), ({"b": "x"}, None)]


def test_keys_are_shown_as_they_are_also_if_they_do_not_decode(tmp_path: Path) -> None:
    lines = tail(tmp_path, [b'{"a": 1}', b'{"b": "x"}'], 'format = "json"\nkey_format = "json"', "--json")
    assert values_and_errors(lines) == [({"a": 1}, None), ({"b": "x"}, None)]
    assert [json.loads(line)["key"] for line in lines] == ["0", "1"]


def test_message_types_of_keys_do_not_matter(tmp_path: Path) -> None:
    format_ = (
        'format = "json"\nkey_format = "protobuf"\nkey_message = "a.B"\n[registries.main]\nurl = "http://127.0.0.1:1"'
    )
    assert values_and_errors(tail(tmp_path, [b'{"a": 1}'], format_, "--json")) == [({"a": 1}, None)]


def test_schemas_are_asked_for_when_a_record_needs_them(tmp_path: Path) -> None:
    with EmbeddedSchemaRegistry() as registry:
        first, second = registry.register("clicks-value", schema(V1)), registry.register("clicks-value", schema(V2))
        values = [
            framed(first, V1, id=1, price=5),
            framed(second, V2, id=2, price="6 EUR", note="x"),
            framed(9, V1, id=1, price=1),
        ]
        format_ = f'format = "avro"\n[registries.main]\nurl = "{registry.url}"'
        [old, new, unknown] = values_and_errors(tail(tmp_path, values, format_, "--json"))
        assert [request for request in registry.requests if "schemas/ids" in request].count("GET /schemas/ids/1") == 1
    assert old == ({"_kafka_schema_id": first, "id": 1, "price": 5}, None)
    assert new == ({"_kafka_schema_id": second, "id": 2, "price_2": "6 EUR", "note": "x"}, None)
    assert unknown[1] == "the registry main has no schema with the id 9"


def test_a_time_outside_of_the_years_of_a_table_is_shown_with_its_bytes_and_the_reason(tmp_path: Path) -> None:
    time = {"type": "long", "logicalType": "timestamp-micros"}
    fields = [{"name": "at", "type": time}, {"name": "times", "type": {"type": "array", "items": time}}]
    after_9999 = 10**18
    with EmbeddedSchemaRegistry() as registry:
        number = registry.register("clicks-value", schema(fields))
        values = [framed(number, fields, at=after_9999, times=[0]), framed(number, fields, at=0, times=[after_9999])]
        format_ = f'format = "avro"\n[registries.main]\nurl = "{registry.url}"'
        shown = values_and_errors(tail(tmp_path, values, format_, "--json"))
    assert [value.keys() for value, _ in shown] == [{"base64"}, {"base64"}]
    assert all("years 1 to 9999" in str(error) for _, error in shown)


# fault F14
def test_a_value_shows_the_fields_of_a_schema_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "click.avsc").write_text(schema([{"name": "id", "type": "long"}]))
    shown = values_and_errors(tail(tmp_path, [b"\x0e", b""], 'format = "avro"\navro_file = "click.avsc"', "--json"))
    assert [value for value, _ in shown] == [{"id": 7}, ""]
    assert shown[1][1] == "id: a number is not a valid int or long (byte 0)"


# fault F15
def test_a_value_shows_the_columns_of_its_headers(tmp_path: Path) -> None:
    log = log_with_headers([(b'{"id": 7}', [("ce_id", b"a1")]), (b'{"id": 8}', [])])
    lines = tail(tmp_path, log, 'format = "json"\nheader_columns = ["ce_id"]', "--json")
    assert values_and_errors(lines) == [({"_kafka_header_ce_id": "a1", "id": 7}, None), ({"id": 8}, None)]
