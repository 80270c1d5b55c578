"""The entry of a load says what deltalake would have written. What a writer has to know is left to deltalake."""

import json
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from deltalake import DeltaTable, TableFeatures

from pipelines.delta import delta_table as table_module
from pipelines.delta.append import can_append
from pipelines.delta.delta_log_segment import DeltaLogSegment
from pipelines.delta.open_version import DeltaVersion
from pipelines.ledger.ledger import KEY
from pipelines.verify.verify import verify
from tests.small_table import SmallTable


def actions(small: SmallTable, version: int) -> list[dict[str, Any]]:
    entry = Path(small.uri) / "_delta_log" / f"{version:020d}.json"
    return [json.loads(line) for line in entry.read_text().splitlines()]


def segment_of(small: SmallTable) -> DeltaLogSegment:
    segment = DeltaVersion.of(small.table.snapshot()).segment
    assert segment is not None
    return segment


def by_both(small: SmallTable, write: Any) -> list[list[dict[str, Any]]]:
    """The actions of the same commit as deltalake writes it, and as Penstock does. The log has neither of them."""
    facts, versions = write(), []
    for appends in (False, True):
        with patch.object(table_module, "can_append", lambda _, appends=appends: appends):
            version = small.commit(facts).version
        versions.append(actions(small, version))
        (Path(small.uri) / "_delta_log" / f"{version:020d}.json").unlink()
    return versions


def comparable(action: dict[str, Any]) -> dict[str, Any]:
    """The action without values that are null, and without times, ids and the name of the writer."""
    [(kind, values)] = action.items()
    kept = {name: value for name, value in values.items() if value is not None}
    for name in ("timestamp", "modificationTime", "engineInfo", "clientVersion", KEY):
        kept.pop(name, None)
    if "schemaString" in kept:
        kept["schemaString"] = json.loads(kept["schemaString"])
    return {kind: kept}


def test_an_entry_has_the_actions_that_deltalake_would_write(small: SmallTable) -> None:
    small.commit(small.write(0, 50))
    theirs, ours = by_both(small, lambda: small.write(50, 80))
    assert [comparable(action) for action in ours] == [comparable(action) for action in theirs]
    assert ours[0]["commitInfo"]["engineInfo"].startswith("penstock:")
    assert json.loads(ours[0]["commitInfo"][KEY])["sequence"] == 2
    assert [list(action) for action in ours] == [["commitInfo"], ["add"], ["txn"], ["txn"]]


def test_columns_that_a_raw_table_of_an_older_version_lacks_are_added(small: SmallTable) -> None:
    fields = [field for field in json.loads(small.handle().schema().to_json())["fields"] if field["name"] != "inner"]
    log = Path(small.uri) / "_delta_log" / f"{0:020d}.json"
    rewritten = actions(small, 0)
    for action in rewritten:
        if "metaData" in action:
            action["metaData"]["schemaString"] = json.dumps({"type": "struct", "fields": fields})
    log.write_text("\n".join(map(json.dumps, rewritten)))
    theirs, ours = by_both(small, lambda: small.write(0, 50))
    by_kind = [{kind: action for action in map(comparable, entry) for kind in action} for entry in (theirs, ours)]
    assert by_kind[0]["metaData"] == by_kind[1]["metaData"]
    assert "inner" in json.dumps(by_kind[1]["metaData"])
    small.commit(small.write(0, 50))
    assert "inner" in {field.name for field in small.handle().schema().fields}
    assert small.rows() == 5


def test_a_checkpoint_follows_each_tenth_entry(small: SmallTable) -> None:  # fault L22
    for start in range(0, 100, 10):
        small.commit(small.write(start, start + 10))
    pointer = json.loads((Path(small.uri) / "_delta_log" / "_last_checkpoint").read_text())
    assert pointer["version"] == 10
    small.commit(small.write(100, 110))
    segment = segment_of(small)
    assert segment.checkpoint_version == 10
    assert segment.metadata["configuration"] == small.handle().metadata().configuration
    assert (small.rows(), verify(small.table).proven) == (11, True)


def test_new_columns_after_a_checkpoint_keep_what_the_table_says_of_itself(small: SmallTable) -> None:
    """A checkpoint stores maps as lists of pairs, which no entry of the log may have."""
    small.commit(small.write(0, 50))
    small.handle().alter.set_table_properties({"owner": "me"}, raise_if_not_exists=False)
    small.handle().create_checkpoint()
    segment = segment_of(small)
    assert (segment.checkpoint_version, list(segment.commit_files)) == (2, [2])
    action = json.loads(json.dumps(segment.metadata))
    assert action["configuration"]["owner"] == "me"
    assert action["format"] == {"provider": "parquet", "options": {}}
    assert action["partitionColumns"] == ["date"]
    assert action["id"] == small.table.snapshot().table_id


def with_change_feed(handle: DeltaTable) -> None:
    handle.alter.set_table_properties({"delta.enableChangeDataFeed": "true"})


def with_named_change_feed(handle: DeltaTable) -> None:
    """In the version of the protocol in which a table names each feature."""
    handle.alter.add_feature(TableFeatures.ChangeDataFeed, allow_protocol_versions_increase=True)


@pytest.mark.parametrize("change", [with_change_feed, with_named_change_feed], ids=lambda change: change.__name__)
def test_a_table_with_rules_for_writers_is_left_to_deltalake(change: Any, small: SmallTable) -> None:
    small.commit(small.write(0, 50))
    change(small.handle())
    assert not can_append(segment_of(small).definition)
    version = small.commit(small.write(50, 80)).version
    [info] = [action["commitInfo"] for action in actions(small, version) if "commitInfo" in action]
    assert info["engineInfo"].startswith("delta-rs")
    assert (small.rows(), verify(small.table).proven) == (8, True)
