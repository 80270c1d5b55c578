"""Each table has the fields, field by field and version by version, that the schemas of Kafka's own clients have."""

from typing import Any, get_origin

import pytest

from kafka_io.wire.schema import NEVER, FieldVersions
from kafka_io.wire.types import NULL_UUID, String, Uuid, WireBytes
from tests.all_requests import REQUESTS
from tests.golden_messages import KINDS, SIDES, Column, columns, kind_of, load, text, without_none

SCHEMAS = load("schemas")
# Before v4 a broker cannot be told not to make a topic that is asked for; it must be possible to ask all the same.
OURS = {("Metadata", "request"): ["allow_auto_topic_creation"]}
BOTH = [(api, side) for api in KINDS for side in SIDES]


def test_every_api_of_the_schemas_has_a_table_and_each_table_is_found_by_its_number() -> None:
    assert SCHEMAS.keys() == KINDS.keys()
    assert {number: kind.API.name for number, kind in REQUESTS.items()} == {
        facts["key"]: name for name, facts in SCHEMAS.items()
    }


@pytest.mark.parametrize("name", KINDS)
def test_all_versions_are_there_from_0_to_the_newest(name: str) -> None:
    api, facts = KINDS[name].API, SCHEMAS[name]
    assert list(api.versions) == facts["versions"]
    assert api.flexible_from == (NEVER if facts["flexible_from"] is None else facts["flexible_from"])


@pytest.mark.parametrize(("name", "side"), BOTH)
def test_each_version_has_its_fields_with_type_order_null_and_tag(name: str, side: str) -> None:
    first, last = KINDS[name].API.versions
    ours = {version: text(kind_of(name, side), version) for version in range(first, last + 1)}
    theirs: dict[int, str] = {}
    for versions, fields in SCHEMAS[name][side]["fields"].items():
        since, until = map(int, versions.split("-"))
        theirs |= dict.fromkeys(range(since, until + 1), fields)
    assert ours == theirs


def sometimes(name: str, side: str) -> list[Column]:
    """The fields that some versions lack, or leave out where they have their default: there a default has a meaning."""
    return [
        column
        for column in columns(kind_of(name, side))
        if (column.row.since, column.row.until) != (FieldVersions().since, FieldVersions().until)
        or column.row.tag is not None
    ]


@pytest.mark.parametrize(("name", "side"), BOTH)
def test_a_value_is_left_out_of_old_versions_only_where_kafka_leaves_it_out(name: str, side: str) -> None:
    theirs = {*SCHEMAS[name][side]["ignorable"], *OURS.get((name, side), ())}
    for column in sometimes(name, side):
        assert (column.path, column.row.ignorable) == (column.path, column.path in theirs)


@pytest.mark.parametrize(("name", "side"), BOTH)
def test_what_a_version_lacks_has_the_default_that_kafka_gives_it(name: str, side: str) -> None:
    for column in sometimes(name, side):
        theirs = SCHEMAS[name][side]["defaults"].get(column.path)
        assert (column.path, column.default) == (column.path, expected(column, theirs))


def expected(column: Column, theirs: str | None) -> Any:
    inner, nullable = without_none(column.hint)
    if theirs == "null" or (nullable and column.default is None):  # ours may say "not told" where theirs is empty
        return None
    if get_origin(inner) is tuple:
        return ()
    if isinstance(inner, type):
        return inner()
    if inner in (String, WireBytes):
        return theirs or ("" if inner == String else b"")
    if inner == Uuid:
        return NULL_UUID
    return {"true": 1, "false": 0, None: 0}.get(theirs) if theirs in ("true", "false", None) else int(theirs, 0)
