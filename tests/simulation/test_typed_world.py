"""Worlds with a typed table and a deliberate fault break a law; test_world.py simulates those without one."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest

from kafka_io.errors import KafkaIOError
from kafka_io.values.decoding import DecodedValues, ValueDecoder
from pipelines.commit import commit
from pipelines.commit.commit import columns_to_add
from pipelines.fetch import decode_plan, typed_rows
from pipelines.fetch.decode_plan import DecodePlan, Learned, WriterSchemas
from pipelines.fetch.decoding import Decoding
from pipelines.fetch.slice_fetcher import SliceFetcher
from pipelines.fetch.typed_rows import decoder_of
from pipelines.layout.columns import with_columns
from pipelines.layout.delta_schema import DeltaField
from pipelines.ledger.ledger import TableState
from pipelines.ledger.schema_ids import SchemaIds
from pipelines.ledger.slice_facts import SliceFacts
from pipelines.load import fetched
from pipelines.table.table_store import TableSnapshot
from resources.errors import CommitRefused
from tests.simulation.__main__ import run
from tests.simulation.world import DAYS, Failed

pytestmark = pytest.mark.crash
_WORLDS_TO_FAIL = 30
_LEARN = Decoding.learn
_IN_SCHEMAS = decode_plan._Part._in_schemas
_FAILED_COLUMNS = typed_rows._failed_columns
_FETCH_DECODED = SliceFetcher.fetch_decoded


def _no_answer_is_unknown(decoding: Decoding, ids: Iterable[int], fields: Sequence[pa.Field] = (), **keys: Any) -> None:
    ids = list(ids)
    try:
        _LEARN(decoding, ids, fields, **keys)
    except KafkaIOError:
        refused = dict.fromkeys(ids, "the registry main has no schema with the id")
        known = decoding._values.learned.schemas.known
        decoding._values.learned = Learned(schemas=WriterSchemas(known=known, refused=refused))
        _LEARN(decoding, ())


def _of_the_newest(*args: Any) -> Iterator[Sequence[pa.Field]]:
    yield from list(_IN_SCHEMAS(*args))[-1:]


def _without_bytes(*args: Any) -> tuple[pa.Array, pa.Array]:
    reasons, kept = _FAILED_COLUMNS(*args)
    return reasons, pa.nulls(len(kept), pa.binary())


def _refusing_new_columns(state: TableState, snapshot: TableSnapshot, of_files: pa.Schema) -> tuple[DeltaField, ...]:
    if snapshot.entry and snapshot.entry.columns:
        name, kind = snapshot.layout.values.names[-1], snapshot.layout.values.types[-1]
        raise CommitRefused(f"run x committed first (the table has a column {name} of type {kind}, not {kind}); again")
    return columns_to_add(state, snapshot, of_files)


def _by_name(present: pa.Schema, fields: Iterable[pa.Field], *_: object) -> pa.Schema:
    return with_columns(present, pa.schema(fields))


def _fetched_twice(fetcher: SliceFetcher, *args: Any, **options: Any) -> list[SliceFacts]:
    _FETCH_DECODED(fetcher, *args, **options)
    return _FETCH_DECODED(fetcher, *args, **options)


class _Shifted:
    """A decoder that gives each row the value of its neighbour."""

    def __init__(self, plan: DecodePlan) -> None:
        self._decoder: ValueDecoder = decoder_of(plan)
        self.columns = self._decoder.columns

    def decode(self, values: pa.BinaryArray) -> DecodedValues:
        """See ValueDecoder."""
        return self._decoder.decode(pa.concat_arrays([values[1:], values[:1]]))


def _no_limits(*_: object) -> None:
    """Check nothing."""


BROKEN: Mapping[str, tuple[object, str, object]] = {
    "values are undecodable if the registry does not answer": (Decoding, "learn", _no_answer_is_unknown),
    "new columns do not land with their first rows": (commit, "columns_to_add", lambda *_: ()),
    "a field keeps its column when its type changes": (decode_plan, "grown", _by_name),
    "a commit on top of one with new columns is refused": (commit, "columns_to_add", _refusing_new_columns),
    "fields that only older schemas have get no column": (decode_plan._Part, "_in_schemas", _of_the_newest),
    "bytes that do not decode are lost": (typed_rows, "_failed_columns", _without_bytes),
    "values are in the rows of their neighbours": (typed_rows, "decoder_of", _Shifted),
    "the limits for bad records are not checked": (fetched, "check_records", _no_limits),
    "the ids of schemas are not recorded": (Decoding, "schema_ids", SchemaIds()),
    "new keys of JSON objects get no column": (typed_rows._PartRows, "_new_fields", lambda *_: ()),
    "slices are fetched again without a reason": (SliceFetcher, "fetch_decoded", _fetched_twice),
}


_SEEDS_OF_FAULTS: Mapping[str, int] = {
    "values are undecodable if the registry does not answer": 2,
    "a field keeps its column when its type changes": 300,
    "fields that only older schemas have get no column": 3,
    "the ids of schemas are not recorded": 2,
}
"""The seed of a world that detects the fault early, as in test_world.py."""


@pytest.mark.parametrize("name", BROKEN)
def test_the_simulation_of_typed_tables_detects_a_deliberate_fault(name: str) -> None:
    owner, attribute, value = BROKEN[name]
    with patch.object(owner, attribute, value), pytest.raises(Failed, match="seed"):
        run(_WORLDS_TO_FAIL * DAYS, _SEEDS_OF_FAULTS.get(name, 1), is_typed=True)
