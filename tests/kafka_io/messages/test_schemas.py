"""Each message has the fields of the schemas of Kafka's own clients, in every version."""

from typing import Any, get_origin

import pytest

from kafka_io.wire.schema import NEVER, FieldVersions
from kafka_io.wire.types import NULL_UUID, String, Uuid, WireBytes
from tests.all_requests import REQUESTS
from tests.golden_messages import KINDS, SIDES, Column, columns, kind_of, load, text, without_none

SCHEMAS = load("schemas")
# Before v4 a request cannot forbid that the broker creates the topic, but it must still be possible to send it.
ADDED_BY_THIS_CLIENT = {("Metadata", "request"): ["allow_auto_topic_creation"]}
BOTH = [(api, side) for api in KINDS for side in SIDES]


def test_every_api_of_the_schemas_has_a_class_with_its_number() -> None:
    assert SCHEMAS.keys() == KINDS.keys()
    assert {number: kind.API.name for number, kind in REQUESTS.items()} == {
        facts["key"]: name for name, facts in SCHEMAS.items()
    }


@pytest.mark.parametrize("name", KINDS)
def test_every_api_has_all_versions_from_0_to_the_newest(name: str) -> None:
    api, facts = KINDS[name].API, SCHEMAS[name]
    assert list(api.versions) == facts["versions"]
    assert api.flexible_from == (NEVER if facts["flexible_from"] is None else facts["flexible_from"])


@pytest.mark.parametrize(("name", "side"), BOTH)
def test_each_version_has_the_fields_types_order_nulls_and_tags_of_the_schema(name: str, side: str) -> None:
    first, last = KINDS[name].API.versions
    of_this_client = {version: text(kind_of(name, side), version) for version in range(first, last + 1)}
    of_kafka: dict[int, str] = {}
    for versions, fields in SCHEMAS[name][side]["fields"].items():
        since, until = map(int, versions.split("-"))
        of_kafka |= dict.fromkeys(range(since, until + 1), fields)
    assert of_this_client == of_kafka


def optional_columns(name: str, side: str) -> list[Column]:
    """The fields that some versions lack, and tagged fields, which are left out if they have their default."""
    return [
        column
        for column in columns(kind_of(name, side))
        if (column.row.since, column.row.until) != (FieldVersions().since, FieldVersions().until)
        or column.row.tag is not None
    ]


@pytest.mark.parametrize(("name", "side"), BOTH)
def test_a_value_is_dropped_in_old_versions_only_if_kafka_drops_it(name: str, side: str) -> None:
    of_kafka = {*SCHEMAS[name][side]["ignorable"], *ADDED_BY_THIS_CLIENT.get((name, side), ())}
    for column in optional_columns(name, side):
        assert (column.path, column.row.ignorable) == (column.path, column.path in of_kafka)


@pytest.mark.parametrize(("name", "side"), BOTH)
def test_a_field_that_a_version_lacks_has_the_default_of_the_schema(name: str, side: str) -> None:
    for column in optional_columns(name, side):
        of_kafka = SCHEMAS[name][side]["defaults"].get(column.path)
        assert (column.path, column.default) == (column.path, expected(column, of_kafka))


def expected(column: Column, of_kafka: str | None) -> Any:
    inner, nullable = without_none(column.hint)
    if of_kafka == "null" or (nullable and column.default is None):  # None may stand for Kafka's empty string
        return None
    if get_origin(inner) is tuple:
        return ()
    if isinstance(inner, type):
        return inner()
    if inner in (String, WireBytes):
        return of_kafka or ("" if inner == String else b"")
    if inner == Uuid:
        return NULL_UUID
    return {"true": 1, "false": 0, None: 0}.get(of_kafka) if of_kafka in ("true", "false", None) else int(of_kafka, 0)
