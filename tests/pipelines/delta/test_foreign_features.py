"""A table that asks for more of Delta than Penstock does is refused by every command with the same sentence."""

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import pytest

from pipelines.maintenance.clean import clean
from pipelines.maintenance.history import newest_version
from pipelines.maintenance.rewind import plan_rewind, rewind
from pipelines.verify.verify import verify
from resources.errors import LakeRefused, TableForeign
from tests.pipelines.delta.test_append import segment_of

if TYPE_CHECKING:
    from pipelines.delta.delta_table import DeltaLakeTable
    from tests.small_table import SmallTable

READERS = {"deletionVectors", "columnMapping", "v2Checkpoint", "typeWidening", "variantType", "catalogManaged"}
FEATURES = [
    *sorted(READERS),
    "clustering",
    "rowTracking",
    "inCommitTimestamp",
    "domainMetadata",
    "icebergCompatV1",
    "icebergCompatV2",
    "allowColumnDefaults",
    "checkpointProtection",
    "a feature of tomorrow",
]


def commit_action(small: "SmallTable", action: dict[str, Any]) -> None:
    """Another program commits this action."""
    path = Path(small.uri) / "_delta_log" / f"{small.handle().version() + 1:020d}.json"
    path.write_text(json.dumps({"commitInfo": {}}) + "\n" + json.dumps(action) + "\n")


def refused_by(table: "DeltaLakeTable") -> list[str]:
    """What each command says."""
    asked: list[Callable[[], object]] = [
        table.snapshot,
        table.newest,
        lambda: newest_version(table),
        lambda: plan_rewind(table, 1, run="run"),
    ]
    said = []
    for ask in asked:
        with pytest.raises(TableForeign) as refused:
            ask()
        said.append(refused.value.reason)
    cleaned = clean(table, keep=timedelta(days=1), target_bytes=1024, dry_run=False)
    return [*said, *verify(table).problems, cleaned.foreign]


@pytest.mark.parametrize("feature", FEATURES)
def test_a_feature_that_penstock_does_not_know_is_named_by_every_command(
    feature: str, small: "SmallTable"
) -> None:  # faults E22, E24
    small.commit(small.write(0, 50))
    reads = feature in READERS
    protocol = {"minReaderVersion": 3 if reads else 1, "minWriterVersion": 7, "writerFeatures": [feature]}
    commit_action(small, {"protocol": {**protocol, **({"readerFeatures": [feature]} if reads else {})}})
    with patch("pipelines.delta.reader.DeltaTable", side_effect=AssertionError("deltalake is asked")):
        [sentence] = set(refused_by(small.table))
    assert sentence.startswith(f"the table uses the Delta feature {feature}, ")
    assert f"DROP FEATURE {feature}" in sentence


@pytest.mark.parametrize(("reader", "writer"), [(99, 7), (3, 8)])
def test_a_later_protocol_is_named_by_every_command(reader: int, writer: int, small: "SmallTable") -> None:  # fault E24
    small.commit(small.write(0, 50))
    features: dict[str, list[str]] = {"readerFeatures": [], "writerFeatures": []}
    commit_action(small, {"protocol": {"minReaderVersion": reader, "minWriterVersion": writer, **features}})
    [sentence] = set(refused_by(small.table))
    assert f"needs version {reader} of Delta's protocol for readers and {writer} for writers" in sentence


def test_a_table_with_a_check_constraint_is_refused(small: "SmallTable") -> None:  # fault E23
    small.commit(small.write(0, 50))
    small.handle().alter.add_constraint({"positive": "offset >= 0"})
    [sentence] = set(refused_by(small.table))
    assert "the table has the constraint positive (offset >= 0)" in sentence
    assert sentence.endswith("DROP CONSTRAINT positive removes it")
    small.handle().alter.drop_constraint("positive")
    small.commit(small.write(50, 80))
    assert verify(small.table).problems == ()


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ("delta.invariants", "a rule for the values of a column"),
        ("delta.generationExpression", "a generated column"),
        ("delta.identity.start", "an identity column"),
    ],
)
def test_a_table_with_a_rule_for_a_column_is_refused(rule: str, said: str, small: "SmallTable") -> None:  # fault E23
    small.commit(small.write(0, 50))
    metadata = dict(segment_of(small).metadata)
    schema = json.loads(metadata["schemaString"])
    schema["fields"].append({"name": "more", "type": "long", "nullable": True, "metadata": {rule: "1"}})
    commit_action(small, {"metaData": {**metadata, "schemaString": json.dumps(schema)}})
    with pytest.raises(TableForeign, match=f"the table has {said}"):
        small.table.snapshot()
    assert said in verify(small.table).problems[0]


def test_a_commit_that_deltalake_refuses_is_no_conflict(small: "SmallTable") -> None:  # fault E22
    """Deltalake does not know this feature, which asks nothing of a load. Housekeeping has to use deltalake."""
    small.commit(small.write(0, 50))
    small.commit(small.write(50, 80))
    features = ["vacuumProtocolCheck"]
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": features, "writerFeatures": features}
    commit_action(small, {"protocol": protocol})
    small.commit(small.write(80, 90))
    with pytest.raises(LakeRefused, match=r"takes no commit: Unsupported table features required"):
        clean(small.table, keep=timedelta(days=1), target_bytes=1024 * 1024, dry_run=False)
    with pytest.raises(LakeRefused, match=r"takes no commit: Unsupported table features required"):
        rewind(plan_rewind(small.table, 1, run="run"))
