"""A few hundred typed values, samples and schemas of the kinds that `make fuzz` tries for hours."""

import json
import os
import random
from collections import Counter

import pytest

from tests.fuzz.avro_changes import check_changes, mutated_changes
from tests.fuzz.debezium_values import check_events, mutated_events
from tests.fuzz.framed_json import check_framed_documents, mutated_framed_documents
from tests.fuzz.frames import check_frames, mutated_frames
from tests.fuzz.inferred_columns import check_samples, mutated_samples
from tests.fuzz.json_values import check_documents, mutated_documents
from tests.fuzz.schema_texts import check_schema, mutated_schema
from tests.fuzz.sized import joined

INPUTS = 400 if os.environ.get("NUMBA_DISABLE_JIT") != "1" else 60


def test_mutated_documents_give_the_rows_of_the_oracle_or_are_refused() -> None:
    rng = random.Random(7)
    ended = Counter(check_documents(mutated_documents(rng), rng) for _ in range(INPUTS))
    assert set(ended) == {"read", "refused"}


def test_mutated_change_events_give_the_rows_of_the_oracles_or_are_refused() -> None:
    rng = random.Random(7)
    ended = Counter(check_events(mutated_events(rng), rng) for _ in range(INPUTS))
    assert set(ended) == {"read", "refused"}


def test_mutated_frames_give_the_ids_and_paths_of_the_oracle_or_are_refused() -> None:
    rng = random.Random(7)
    ended = Counter(check_frames(mutated_frames(rng), rng) for _ in range(INPUTS))
    assert set(ended) == {"read", "refused"}


def test_mutated_framed_documents_give_the_rows_of_the_oracles_or_are_refused() -> None:
    rng = random.Random(7)
    ended = Counter(check_framed_documents(mutated_framed_documents(rng), rng) for _ in range(INPUTS))
    assert set(ended) == {"read", "refused"}


@pytest.mark.slow
def test_mutated_values_of_schemas_that_changed_give_the_rows_of_the_oracle_or_are_refused() -> None:
    rng = random.Random(7)
    ended = Counter(check_changes(mutated_changes(rng), rng) for _ in range(INPUTS))
    assert set(ended) == {"read", "refused"}


def test_a_record_without_fields_that_gets_one_is_a_text_and_then_a_column() -> None:  # fault A12
    records = [{"type": "record", "name": "R", "fields": fields} for fields in ([], [{"name": "f", "type": "bytes"}])]
    schemas = json.dumps([[record, "null"] for record in records]).encode()
    values = joined([b"\x00\x00", b"\x00\x02", b"\x01\x00\x02a", b"\x01\x02"])
    assert check_changes(schemas + b"\n" + values, random.Random(7)) == "read"


def test_columns_of_mutated_samples_only_grow_and_hold_all_that_can_be_read() -> None:
    rng = random.Random(7)
    ended = Counter(check_samples(mutated_samples(rng), rng) for _ in range(INPUTS // 2))
    assert set(ended) == {"read", "refused"}


@pytest.mark.slow
def test_mutated_schemas_give_columns_and_a_decoder_or_typed_errors() -> None:
    rng = random.Random(7)
    ended = Counter(check_schema(mutated_schema(rng), rng) for _ in range(INPUTS // 2))
    assert set(ended) == {"read", "refused"}
