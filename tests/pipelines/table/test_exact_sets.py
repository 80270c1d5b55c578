"""An exact set is stored in the entry if it is small, and in a file otherwise; a lost or damaged one is an error."""

import hashlib
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from kafka_io.model import BrokerPartition, OffsetRange
from pipelines.ledger.committed_range import CommittedRange, ExactCause, StoredSet
from pipelines.ledger.exact_offsets import NO_OFFSETS, ExactOffsets
from pipelines.table import exact_sets
from pipelines.table.exact_sets import ExactSets, store_exact, with_shared_sets
from resources.errors import ExactSetLost
from resources.failpoints import KILL_AT
from resources.stores import durable
from tests.pipelines.taken_out import with_exact

ONE = BrokerPartition(None, 0)
SMALL, LARGE = ExactOffsets.of(np.arange(0, 100, 2)), ExactOffsets.of(np.arange(0, 10_000, 7))


@pytest.mark.parametrize(("offsets", "files"), [(SMALL, 0), (LARGE, 1)])
def test_a_stored_set_is_read_again(offsets: ExactOffsets, files: int, tmp_path: Path) -> None:
    stored = store_exact(str(tmp_path), {}, offsets)
    assert ExactSets.at(str(tmp_path), {}).of(stored) == offsets
    data = offsets.encode()
    assert (stored.sha256, stored.size) == (hashlib.sha256(data).hexdigest(), len(data))
    assert len(list(tmp_path.glob("_offsets/*.offsets"))) == files
    assert bool(stored.path) is not bool(stored.inline)


def test_a_new_file_survives_a_loss_of_power(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # fault L10
    synced: list[Path] = []
    monkeypatch.setattr(durable, "sync", synced.append)
    stored = store_exact(str(tmp_path), {}, LARGE)
    assert {tmp_path / stored.path, tmp_path / "_offsets", tmp_path} <= set(synced)


def test_a_process_that_ends_with_a_new_file_leaves_a_whole_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("resources.failpoints._pass_counts", Counter())
    monkeypatch.setenv(KILL_AT, "raise:offsets written")
    with pytest.raises(MemoryError):
        store_exact(str(tmp_path), {}, LARGE)
    [file] = tmp_path.glob("_offsets/*.offsets")
    assert file.read_bytes() == LARGE.encode()


def test_a_range_names_only_its_own_part_of_a_set_and_counts_it() -> None:
    committed = CommittedRange(offsets=OffsetRange(ONE, 10, 20), rows=5, gaps={"compacted": 2, "erased": 9})
    sets = {
        ExactCause.ERASED: ExactOffsets.of(np.array([3, 11, 12])),
        ExactCause.RETIRED: ExactOffsets.of(np.array([20])),
    }
    changed = with_exact(committed, sets, lambda offsets: store_exact("", {}, offsets))
    assert changed.gaps == {"compacted": 2, "erased": 2}
    assert list(changed.exact) == [ExactCause.ERASED]
    read = CommittedRange.from_dict(changed.as_dict())
    assert read == changed
    assert ExactSets.at("", {}).within(read) == {ExactCause.ERASED: ExactOffsets.of(np.array([11, 12]))}
    assert replace(changed, exact={}, gaps={}).visible_gaps == {}


def test_large_sets_of_a_partition_with_the_same_cause_share_a_file(tmp_path: Path) -> None:
    stored: list[ExactOffsets] = []

    def store(offsets: ExactOffsets) -> StoredSet:
        stored.append(offsets)
        return store_exact(str(tmp_path), {}, offsets)

    kept = StoredSet(sha256="0" * 64, size=9, path="_offsets/kept.offsets")
    first = CommittedRange(offsets=OffsetRange(ONE, 0, 5_000), gaps={"compacted": 2, "erased": 5, "filtered": 7})
    first = replace(first, exact={ExactCause.ERASED: kept, ExactCause.FILTERED: kept})
    second = CommittedRange(offsets=OffsetRange(ONE, 5_000, 10_000))
    parts = [LARGE.within(committed.offsets) for committed in (first, second)]
    sets = [
        {ExactCause.RETIRED: parts[0], ExactCause.ERASED: NO_OFFSETS},
        {ExactCause.RETIRED: parts[1], ExactCause.ERASED: ExactOffsets.of(np.array([5_001]))},
    ]
    ranges = with_shared_sets(zip((first, second), sets, strict=True), store)
    assert stored == [LARGE]
    assert ranges[0].exact[ExactCause.RETIRED] == ranges[1].exact[ExactCause.RETIRED]
    assert [part.gaps for part in ranges] == [
        {"compacted": 2, "filtered": 7, "retired": parts[0].count},
        {"erased": 1, "retired": parts[1].count},
    ]
    assert ranges[0].exact[ExactCause.FILTERED] == kept
    assert [set(part.exact) for part in ranges] == [
        {ExactCause.FILTERED, ExactCause.RETIRED},
        {ExactCause.ERASED, ExactCause.RETIRED},
    ]
    assert ranges[1].exact[ExactCause.ERASED].inline


def test_a_range_without_exact_sets_is_stored_as_ever() -> None:
    committed = CommittedRange(offsets=OffsetRange(ONE, 10, 20), rows=10)
    assert "exact" not in committed.as_dict()
    assert CommittedRange.from_dict(committed.as_dict()) == committed


@pytest.mark.parametrize("extra", [{"another": 1}, {"size": "many"}])
def test_a_reference_of_a_newer_version_is_not_read(extra: dict[str, object]) -> None:
    stored = {"sha256": "", "size": 0, "inline": "", **extra}
    whole = CommittedRange(offsets=OffsetRange(ONE, 10, 20)).as_dict()
    for exact in ({"erased": stored}, {"another": {"sha256": "", "size": 0, "inline": ""}}):
        with pytest.raises(ValueError, match=r"another|size|enum"):
            CommittedRange.from_dict({**whole, "exact": exact})


def damaged(stored: StoredSet, tmp_path: Path) -> None:
    with pytest.raises(ExactSetLost):
        ExactSets.at(str(tmp_path), {}).of(stored)


def test_a_lost_or_damaged_set_is_an_error(tmp_path: Path) -> None:
    inline, stored = (store_exact(str(tmp_path), {}, offsets) for offsets in (SMALL, LARGE))
    file, content = tmp_path / stored.path, LARGE.encode()
    file.write_bytes(content[:-1])
    damaged(stored, tmp_path)
    file.write_bytes(content[:-1] + b"\x7f")
    damaged(stored, tmp_path)
    file.unlink()
    damaged(stored, tmp_path)
    for text in ("%%%", "A"):
        damaged(replace(inline, inline=text), tmp_path)
    damaged(replace(inline, sha256="0" * 64), tmp_path)


@pytest.mark.parametrize("path", ["../secret", "_offsets/../secret", "_offsets/short.offsets", "date=1/a.parquet"])
def test_no_other_file_is_read_as_a_set(path: str, tmp_path: Path) -> None:
    with pytest.raises(ExactSetLost, match="which no Penstock has written"):
        ExactSets.at(str(tmp_path), {}).of(StoredSet(sha256="0" * 64, size=1, path=path))


def test_a_set_that_nobody_could_read_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exact_sets, "MAX_ENCODED_BYTES", 300)
    with pytest.raises(ExactSetLost, match="too many for one set"):
        store_exact(str(tmp_path), {}, LARGE)
    monkeypatch.setattr(exact_sets, "MAX_ENCODED_BYTES", len(LARGE.encode()))
    assert ExactSets.at(str(tmp_path), {}).of(store_exact(str(tmp_path), {}, LARGE)) == LARGE


@pytest.mark.parametrize(("count", "is_text"), [(253, True), (254, False)])
def test_a_set_of_few_bytes_is_a_text(count: int, is_text: bool, tmp_path: Path) -> None:
    offsets = ExactOffsets.of(np.arange(0, 2 * count, 2))
    assert len(offsets.encode()) == count + 3
    assert bool(store_exact(str(tmp_path), {}, offsets).inline) == is_text


def test_the_sets_of_ranges_are_those_of_some_offsets_together() -> None:
    def with_sets(start: int, stop: int, **sets: ExactOffsets) -> CommittedRange:
        exact = {ExactCause(cause): store_exact("", {}, own) for cause, own in sets.items()}
        return CommittedRange(offsets=OffsetRange(ONE, start, stop), exact=exact)

    ranges = [
        with_sets(0, 10, erased=ExactOffsets.of(np.array([3, 8]))),
        with_sets(10, 20, erased=ExactOffsets.of(np.array([12, 19])), filtered=ExactOffsets.of(np.array([15]))),
        with_sets(20, 30),
        with_sets(30, 40, erased=ExactOffsets.of(np.array([31]))),
    ]
    sets = ExactSets.at("", {})
    assert sets.of_ranges(ranges, OffsetRange(ONE, 5, 15)) == {ExactCause.ERASED: ExactOffsets.of(np.array([8, 12]))}
    assert sets.of_ranges(ranges, OffsetRange(ONE, 15, 16)) == {ExactCause.FILTERED: ExactOffsets.of(np.array([15]))}
    assert sets.of_ranges(ranges, OffsetRange(ONE, 20, 30)) == {}
