"""Before the fetch, a run checks that the schemas are unchanged, and decides whether it has to read a sample."""

from dataclasses import replace
from unittest.mock import Mock

import pyarrow as pa
import pytest

from kafka_io.schema_registry.schemas import RegisteredSchema, SchemaType
from pipelines.fetch.decode_plan import PartPlan, WriterSchemas
from pipelines.fetch.decoding import Decoding, _is_unknown
from pipelines.layout.layout import TYPED
from pipelines.ledger.ledger import CommitKind, LedgerEntry, TableState, TopicIdentity
from pipelines.ledger.schema_ids import SchemaIds, SchemaText
from pipelines.table.table_store import TableSnapshot
from resources.errors import SchemaChanged
from resources.settings.topic_formats import TopicFormat

COLUMNS = pa.schema({"id": pa.int64()}).serialize().to_pybytes()
SCHEMA = RegisteredSchema(id=7, schema_type=SchemaType.PROTOBUF, text="")
NAMED = RegisteredSchema(id=7, schema_type=SchemaType.PROTOBUF, text="", messages=("shop.Order",))


@pytest.mark.parametrize(
    ("encoding", "schemas", "unknown"),
    [
        ("protobuf", WriterSchemas(), True),
        ("protobuf", WriterSchemas(known={7: SCHEMA}), False),
        ("protobuf *", WriterSchemas(), True),
        # The file has several message types, and the schema does not say which of them occur in the records.
        ("protobuf *", WriterSchemas(known={7: SCHEMA}), True),
        ("protobuf *", WriterSchemas(known={7: NAMED}), False),
        ("protobuf *", WriterSchemas(refused={7: "the registry has no such schema"}), False),
    ],
)
def test_a_sample_shows_schemas_and_message_types_that_are_unknown(
    encoding: str, schemas: WriterSchemas, unknown: bool
) -> None:
    part = PartPlan(encoding=encoding, columns=COLUMNS, schemas=schemas)
    assert _is_unknown(part, has_schemas=True) is unknown


@pytest.mark.parametrize(
    ("encoding", "names", "unknown"),
    [("inferred json", [], True), ("inferred json", ["id"], False), ("json", [], False), ("json", ["id"], False)],
)
def test_a_sample_shows_columns_that_nothing_declares(encoding: str, names: list[str], unknown: bool) -> None:
    columns = pa.schema(dict.fromkeys(names, pa.int64())).serialize().to_pybytes()
    assert _is_unknown(PartPlan(encoding=encoding, columns=columns), has_schemas=False) is unknown


def test_another_schema_with_a_known_id_is_used_only_by_choice() -> None:  # fault A11
    registered = RegisteredSchema(id=9, schema_type=SchemaType.AVRO, text='{"type":"record","name":"a","fields":[]}')
    registry = Mock(known_schemas=Mock(return_value={9: registered}), versions=Mock(return_value=()))
    registry.name = "main"
    state = TableState(topic=TopicIdentity(cluster="main", name="clicks", incarnation="7"))
    met = SchemaIds(values=(9,), value_texts=(SchemaText(id=9, digest="another", registry="main"),))
    entry = LedgerEntry(commit="c", run="r", kind=CommitKind.LOAD, sequence=1, ranges=(), state=state, schemas=met)
    snapshot, format_ = TableSnapshot(version=1, entry=entry, layout=TYPED), TopicFormat(format="avro", registry="main")
    with pytest.raises(SchemaChanged, match="has another schema with the id 9"):
        Decoding(format_, snapshot, lambda _: registry)
    [warning] = Decoding(format_, snapshot, lambda _: registry, adopts_schemas=True).warnings
    assert "has another schema with the id 9" in warning


@pytest.mark.parametrize(
    ("settings", "is_inferred"),
    [
        ({"format": "json"}, True),
        ({"format": "json", "key_format": "avro", "key_registry": "main"}, True),
        ({"format": "avro", "registry": "main", "key_format": "json"}, True),
        ({"format": "avro", "registry": "main"}, False),
    ],
)
def test_columns_are_inferred_if_values_or_keys_show_them(settings: dict[str, str], is_inferred: bool) -> None:
    registry = Mock(known_schemas=Mock(return_value={}))
    registry.name = "main"
    layout = replace(TYPED, values=pa.schema({"id": pa.int64()}))
    snapshot = TableSnapshot(version=1, entry=None, layout=layout)
    decoding = Decoding(TopicFormat.model_validate(settings), snapshot, lambda _: registry)
    assert list(decoding.inferred) == (list(layout.values) if is_inferred else [])
