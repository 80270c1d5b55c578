"""The compatible changes of an Avro schema give the right columns, whether the table has the old ones or the new ones.

Each move is made on both sides. On the writer's side the table has the columns of the old schema, and values of the new
one follow. On the table's side it has the columns of the new schema, and values of the old one follow.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from kafka_io.schema_registry.schemas import RegisteredSchema, SchemaType
from pipelines.fetch.decode_plan import Learned, WriterSchemas, plan_decoding
from pipelines.fetch.typed_rows import TypedRows
from pipelines.layout.columns import SCHEMA_ID_COLUMN, missing_columns, value_columns
from pipelines.layout.delta_schema import delta_fields
from pipelines.layout.layout import TYPED, TableLayout
from resources.settings.topic_formats import TopicFormat

AVRO = TopicFormat(format="avro", registry="main")


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """A schema: its fields, as Avro declares them, and one of its values."""

    fields: Sequence[Mapping[str, Any]]
    value: Mapping[str, Any]

    def registered(self, schema_id: int) -> RegisteredSchema:
        """The schema as the registry returns it."""
        return RegisteredSchema(id=schema_id, schema_type=SchemaType.AVRO, text=json.dumps(self._schema))

    def framed(self, schema_id: int) -> bytes:
        """The value as Confluent's serializer writes it."""
        body = BytesIO()
        fastavro.schemaless_writer(body, fastavro.parse_schema(dict(self._schema)), dict(self.value))
        return b"\0" + schema_id.to_bytes(4, "big") + body.getvalue()

    @property
    def _schema(self) -> Mapping[str, Any]:
        return {"type": "record", "name": "Order", "fields": list(self.fields)}


def version(fields: Mapping[str, Any], *, aliases: Mapping[str, Sequence[str]] | None = None, **value: Any) -> Version:
    """A schema of these fields with their types; `aliases` are earlier names of fields."""
    known = aliases or {}
    declared = [{"name": name, "type": kind, "aliases": known.get(name, [])} for name, kind in fields.items()]
    return Version(fields=declared, value=value)


def table_after(layout: TableLayout, schemas: Mapping[int, Version], ids: Sequence[int]) -> tuple[TableLayout, Any]:
    """The layout after a load of one value of each id, and the fields of the rows, by column."""
    registered = {id_: schema.registered(id_) for id_, schema in schemas.items() if id_ in ids}
    plan, _ = plan_decoding(AVRO, layout, Learned(schemas=WriterSchemas(known=registered)))
    assert plan is not None
    values = pa.array([schemas[id_].framed(id_) for id_ in ids], pa.binary())
    records = pa.RecordBatch.from_pydict({"offset": pa.array(range(len(ids)), pa.int64()), "value": values})
    typed = TypedRows(plan)
    rows = typed.rows(records, {})
    assert typed.examples == []
    after = layout.with_columns(delta_fields(missing_columns(layout.values, plan.stored, layout.taken)))
    assert after.values.names == [SCHEMA_ID_COLUMN, *plan.values.names]
    return after, rows.select(plan.values.names).to_pylist()


def moved(old: Version, new: Version, *, by_writer: bool) -> tuple[dict[str, str], list[dict[str, Any]]]:
    """The columns, and the rows of an old and a new value, of a table that began with the one or the other schema."""
    first, second = (old, new) if by_writer else (new, old)
    schemas = {1: first, 2: second}
    layout, _ = table_after(TYPED, schemas, [1])
    layout, rows = table_after(layout, schemas, [1, 2])
    columns = {column.name: str(column.type) for column in value_columns(layout.values)}
    return columns, rows if by_writer else rows[::-1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """A change from one schema to another, and what the table shows of both values, on each side."""

    old: Version
    new: Version
    by_writer: tuple[Mapping[str, str], Sequence[Mapping[str, Any]]]
    by_table: tuple[Mapping[str, str], Sequence[Mapping[str, Any]]]


def move(old: Version, new: Version, columns: Mapping[str, str], *rows: Mapping[str, Any]) -> Move:
    """A move with the same result on both sides."""
    return Move(old=old, new=new, by_writer=(columns, rows), by_table=(columns, rows))


def record(name: str, *fields: str) -> Any:
    """A record of integers."""
    return {"type": "record", "name": name, "fields": [{"name": field, "type": "long"} for field in fields]}


_THREE = "struct<member0: int64, member1: string, member2: bool>"
_THREE_NEW = "struct<member0: int64, member1: bool, member2: string>"
MOVES = {
    "add": move(
        version({"id": "long"}, id=1),
        version({"id": "long", "note": "string"}, id=2, note="x"),
        {"id": "int64", "note": "string"},
        {"id": 1, "note": None},
        {"id": 2, "note": "x"},
    ),
    "drop": move(
        version({"id": "long", "note": "string"}, id=1, note="x"),
        version({"id": "long"}, id=2),
        {"id": "int64", "note": "string"},
        {"id": 1, "note": "x"},
        {"id": 2, "note": None},
    ),
    "rename by alias": Move(
        old=version({"id": "long", "amount": "long"}, id=1, amount=5),
        new=version({"id": "long", "total": "long"}, aliases={"total": ["amount"]}, id=2, total=6),
        by_writer=({"id": "int64", "amount": "int64"}, [{"id": 1, "amount": 5}, {"id": 2, "amount": 6}]),
        by_table=({"id": "int64", "total": "int64"}, [{"id": 1, "total": 5}, {"id": 2, "total": 6}]),
    ),
    "reorder": move(
        version({"id": "long", "name": "string"}, id=1, name="a"),
        version({"name": "string", "id": "long"}, id=2, name="b"),
        {"id": "int64", "name": "string"},
        {"id": 1, "name": "a"},
        {"id": 2, "name": "b"},
    ),
    "promote int to long": move(
        version({"n": "int"}, n=1), version({"n": "long"}, n=2**40), {"n": "int64"}, {"n": 1}, {"n": 2**40}
    ),
    "promote float to double": move(
        version({"n": "float"}, n=0.5), version({"n": "double"}, n=0.1), {"n": "double"}, {"n": 0.5}, {"n": 0.1}
    ),
    # No column changes its type, and a long does not hold doubles.
    "promote long to double": Move(
        old=version({"n": "long"}, n=1),
        new=version({"n": "double"}, n=0.5),
        by_writer=({"n": "int64", "n_2": "double"}, [{"n": 1, "n_2": None}, {"n": None, "n_2": 0.5}]),
        by_table=({"n": "double"}, [{"n": 1.0}, {"n": 0.5}]),
    ),
    "promote string to bytes": Move(
        old=version({"n": "string"}, n="a"),
        new=version({"n": "bytes"}, n=b"b"),
        by_writer=({"n": "string"}, [{"n": "a"}, {"n": "b"}]),
        by_table=({"n": "binary"}, [{"n": b"a"}, {"n": b"b"}]),
    ),
    "grow an optional field to a union": Move(
        old=version({"u": ["null", "long"]}, u=1),
        new=version({"u": ["null", "long", "string"]}, u="x"),
        by_writer=(
            {"u": "int64", "u_2": "struct<member0: int64, member1: string>"},
            [{"u": 1, "u_2": None}, {"u": None, "u_2": {"member0": None, "member1": "x"}}],
        ),
        by_table=(
            {"u": "struct<member0: int64, member1: string>"},
            [{"u": {"member0": 1, "member1": None}}, {"u": {"member0": None, "member1": "x"}}],
        ),
    ),
    # The names of the records decide, not their places.
    "reorder the records of a union": Move(
        old=version({"u": [record("a.Transfer", "iban"), record("a.Card", "card")]}, u=("a.Transfer", {"iban": 1})),
        new=version({"u": [record("a.Card", "card"), record("b.Transfer", "iban")]}, u=("b.Transfer", {"iban": 2})),
        by_writer=(
            {"u": "struct<member0: struct<iban: int64>, member1: struct<card: int64>>"},
            [{"u": {"member0": {"iban": number}, "member1": None}} for number in (1, 2)],
        ),
        by_table=(
            {"u": "struct<member0: struct<card: int64>, member1: struct<iban: int64>>"},
            [{"u": {"member0": None, "member1": {"iban": number}}} for number in (1, 2)],
        ),
    ),
    # The members of the table keep their places, so a type that the union gets in its middle is the last member.
    "grow a union": Move(
        old=version({"u": ["long", "string"]}, u="x"),
        new=version({"u": ["long", "boolean", "string"]}, u=True),
        by_writer=(
            {"u": _THREE},
            [
                {"u": {"member0": None, "member1": "x", "member2": None}},
                {"u": {"member0": None, "member1": None, "member2": True}},
            ],
        ),
        by_table=(
            {"u": _THREE_NEW},
            [
                {"u": {"member0": None, "member1": None, "member2": "x"}},
                {"u": {"member0": None, "member1": True, "member2": None}},
            ],
        ),
    ),
}


@pytest.mark.parametrize("name", MOVES)
def test_a_change_by_the_writer_gives_old_and_new_values_their_columns(name: str) -> None:
    step = MOVES[name]
    assert moved(step.old, step.new, by_writer=True) == (step.by_writer[0], list(step.by_writer[1]))


@pytest.mark.parametrize("name", MOVES)
def test_a_table_that_has_the_new_columns_gives_old_and_new_values_their_columns(name: str) -> None:
    step = MOVES[name]
    assert moved(step.old, step.new, by_writer=False) == (step.by_table[0], list(step.by_table[1]))


@pytest.mark.parametrize("first_load", [[1], [1, 2], [1, 2, 3]])
def test_a_field_keeps_all_its_members_if_a_later_schema_takes_its_name_for_another_field(
    first_load: Sequence[int],
) -> None:
    """The second schema's `old` is an alias of `new`, until the third schema has a field `old` of its own."""
    schemas = {
        1: version({"new": record("New", "c")}, new={"c": 1}),
        2: version({"old": record("Old", "a")}, aliases={"old": ["new"]}, old={"a": 2}),
        3: version({"old": record("Old", "b")}, old={"b": 3}),
    }
    layout, _ = table_after(TYPED, schemas, first_load)
    layout, rows = table_after(layout, schemas, [1, 2, 3])
    assert rows == [
        {"new": {"c": 1, "a": None}, "old": None},
        {"new": None, "old": {"b": None, "a": 2}},
        {"new": None, "old": {"b": 3, "a": None}},
    ]
    assert table_after(layout, schemas, [1, 2, 3])[0] == layout


def test_a_type_that_gets_a_second_record_of_the_same_name_keeps_the_first_in_its_member() -> None:
    """The full name comes before the name without the namespace."""
    first, second = record("a.Event", "x"), record("b.Event", "y")
    schemas = {
        1: version({"u": [first, "long"]}, u=("a.Event", {"x": 1})),
        2: version({"u": [second, "long", first]}, u=("a.Event", {"x": 2})),
        3: version({"u": [second, "long", first]}, u=("b.Event", {"y": 3})),
    }
    layout, _ = table_after(TYPED, schemas, [1])
    layout, rows = table_after(layout, schemas, [1, 2, 3])
    empty = dict.fromkeys(("member0", "member1", "member2"))
    assert rows == [
        {"u": {**empty, "member0": {"x": 1}}},
        {"u": {**empty, "member0": {"x": 2}}},
        {"u": {**empty, "member2": {"y": 3}}},
    ]
    assert table_after(layout, schemas, [1, 2, 3])[0] == layout
