"""The header of a record says to which table of its topic it belongs."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from kafka_io.model import BrokerPartition
from pipelines.ledger.coverage import common
from pipelines.routes.router import Router
from pipelines.schemas.schema_names import SchemaNames
from resources.errors import RouteUnknown
from resources.settings.rules.topic_tables import TopicTables
from resources.settings.settings import SettingsError
from tests.resources.settings.test_load_rules import settings

A, B = BrokerPartition(None, 0), BrokerPartition(None, 1)
_HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
NAMES = {"shop.order": "orders", "shop\\.pay.*": "payments", "note": "main"}


def records(*headers: list[tuple[str, bytes | None]] | None) -> pa.RecordBatch:
    lists = [None if own is None else [{"key": key, "value": value} for key, value in own] for own in headers]
    offsets = pa.array(range(100, 100 + len(headers)), pa.int64())
    return pa.RecordBatch.from_pydict({"offset": offsets, "headers": pa.array(lists, _HEADERS)})


def problems_of(text: str) -> str:
    with pytest.raises(SettingsError) as raised:
        settings(text)
    return str(raised.value)


def routes(router: Router, batch: pa.RecordBatch) -> list[str]:
    of_rows = router.of_rows(batch)
    masks = {route: of_rows.are(route) for route in ("", "orders", "payments", "rest")}
    assert np.sum(list(masks.values()), axis=0).tolist() == [1] * batch.num_rows
    return [next(route for route, mask in masks.items() if mask[row]) for row in range(batch.num_rows)]


BATCH = records(
    [("t", b"shop.order")],
    [("t", b"shop.pay"), ("other", b"x")],
    [("t", b"shop.pay"), ("t", b"shop.order")],  # of several headers the last one counts
    [("t", b"shopXorder")],  # a name is no pattern
    [("t", b"note")],
    [("t", None)],
    [("t", b"\xff")],
    [],
    None,
)


@pytest.mark.parametrize(("others", "route"), [("main", ""), ("rest", "rest"), ("orders", "orders")])
def test_each_record_has_one_table(others: str, route: str) -> None:
    router = Router.of(TopicTables.model_validate({"by": "header:t", "names": NAMES, "others": others}))
    assert routes(router, BATCH) == ["orders", "payments", "orders", route, "", "", "", "", ""]
    assert routes(router, BATCH[7:]) == ["", ""]


def test_a_type_without_a_table_names_the_first_record() -> None:
    router = Router.of(TopicTables.model_validate({"by": "header:t", "names": NAMES, "others": "fail"}))
    with pytest.raises(RouteUnknown, match="the record at offset 103 has the type shopXorder in its header t"):
        router.of_rows(BATCH)
    assert routes(router, BATCH[:3]) == ["orders", "payments", "orders"]


BY_SCHEMA = {
    "by": "schema",
    "names": {"id:7": "rest", "shop.order": "orders", "shop\\.pay.*": "payments", "a:1": "main"},
}
SCHEMAS = SchemaNames(
    known={1: {"": "shop.order"}, 2: {}, 3: {"0": "shop.pay", "0.1": "shop.note"}, 7: {"": "shop.order"}},
    refused={"9": "the registry main has no schema with this id"},
)


def framed(*frames: bytes | None) -> pa.RecordBatch:
    """Records with these values and no headers."""
    batch = records(*[[]] * len(frames))
    return batch.append_column("value", pa.array(frames, pa.binary()))


def of_schemas(others: str = "main", schemas: SchemaNames = SCHEMAS) -> Router:
    return Router.of(TopicTables.model_validate({**BY_SCHEMA, "others": others}), schemas)


def test_a_schema_names_the_table_of_a_record() -> None:
    batch = framed(
        b"\0\0\0\0\1x",
        b"\0\0\0\0\2x",  # no name
        b"\0\0\0\0\3\0x",
        b"\0\0\0\0\3\4\0\2x",  # the type 1 inside the type 0
        b"\0\0\0\0\3\2\2x",  # no such type
        b"\0\0\0\0\3",  # no index path
        b"\0\0\0\0\7x",  # the id comes before the name
        None,
        b"",
        b"x",
        b"\xff" * 9,
    )
    main = [""] * 4
    assert routes(of_schemas("rest"), batch) == ["orders", "", "payments", "rest", "", "", "rest", *main]
    assert of_schemas().of_rows(batch).unnamed == frozenset()


def test_a_schema_without_a_known_name_gives_its_records_no_table_yet() -> None:
    batch = framed(b"\0\0\0\0\1x", b"\0\0\0\0\5\0x", b"\0\0\0\0\6\4\0\2x", b"\0\0\0\0\7x")
    for has_paths, unnamed in ((False, {(5, ""), (6, "")}), (True, {(5, "0"), (6, "0.1")})):
        of_rows = of_schemas(schemas=replace(SCHEMAS, has_paths=has_paths)).of_rows(batch)
        assert of_rows.unnamed == unnamed
        masks = [of_rows.are(route).tolist() for route in ("", "orders", "payments", "rest")]
        assert masks == [[False] * 4, [True, False, False, False], [False] * 4, [False, False, False, True]]


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        (b"\0\0\0\0\3\4\0\2x", "offset 101 has the schema shop.note, and `names` of .* add the type, or name a table"),
        (b"\0\0\0\0\x09x", 'offset 101 has the schema 9, and the registry main has no .* such as "id:9" = "main"'),
    ],
)
def test_a_record_whose_schema_has_no_table_is_named(frame: bytes, words: str) -> None:
    with pytest.raises(RouteUnknown, match=words):
        of_schemas("fail").of_rows(framed(b"\0\0\0\0\1x", frame, frame))


def test_what_several_tables_cover_together() -> None:
    assert common([{A: (0, 9)}, {A: (0, 7)}]) == {A: (0, 7)}
    assert common([{A: (0, 9)}, {A: (5, 7), B: (3, 4)}]) == {A: (5, 7), B: (3, 3)}
    assert common([{A: (0, 3)}, {A: (5, 7)}]) == {A: (3, 3)}
    assert common([{A: (2, 3)}, {}]) == {A: (2, 2)}


@pytest.mark.parametrize(
    ("section", "problem"),
    [
        ('by = "type"\nnames = { a = "b" }', 'write "schema", or "header:" and the name of a header'),
        ('by = "header:"\nnames = { a = "b" }', 'write "schema", or "header:" and the name of a header'),
        ('by = "header:t"\nnames = {}', "names"),
        ('by = "header:t"\nnames = { "(" = "b" }', "is neither a name nor a regular expression"),
        ('by = "header:t"\nnames = { a = "b/c" }', "is no name of a table"),
        ('by = "header:t"\nnames = { a = "fail" }', 'no table can have the name "fail"'),
        ('by = "header:t"\nnames = { a = "b" }\nothers = ""', "is no name of a table"),
    ],
)
def test_settings_that_cannot_work_are_refused(section: str, problem: str) -> None:
    assert problem in problems_of(f"[topics.events.tables]\n{section}\n")


@pytest.mark.parametrize("format_", ["json", "raw", 'avro"\navro_file = "order.avsc'])
def test_a_schema_can_choose_the_table_only_if_it_is_in_a_registry(format_: str) -> None:
    section = f'[topics.events]\nformat = "{format_}"\n[topics.events.tables]\nby = "schema"\nnames = {{ a = "b" }}\n'
    assert 'tables.by: "schema" needs a `format` whose values have schemas in a registry' in problems_of(section)


def test_all_message_types_need_a_registry() -> None:
    section = '[topics.events]\nformat = "protobuf"\nproto_file = "order.proto"\nmessage = "*"\n'
    assert 'message: "*" needs a registry, because a frame names the type of a value' in problems_of(section)


def test_only_a_topic_has_several_tables() -> None:
    section = '[topics."events/orders".tables]\nby = "header:t"\nnames = { a = "b" }\n'
    assert "events/orders.tables: only a topic has several tables" in problems_of(section)
    audited = '[topics.events]\nevent_time = "timestamp"\naudit = "counts"\n[topics.events.tables]\n'
    assert "`audit` and `tables` exclude each other" in problems_of(
        f'{audited}by = "header:t"\nnames = {{ a = "b" }}\n'
    )
