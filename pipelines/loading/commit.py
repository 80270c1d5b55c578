"""Commit: files and offsets become visible together, in one entry of the table's Delta log, or not at all.

The cursor was read from `table`, and the entry is built on that same handle, so deltalake refuses it when another run
moved one of the cursors meanwhile. A fresh handle would not: it takes any `txn` version, lower ones too (FINDINGS, 5).
A call that fails says nothing of what landed (L03): the table is read again, and the commit's own id decides.
No path through here deletes a file (L04).
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime

import pyarrow.fs as pafs
from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError
from deltalake.transaction import AddAction

from pipelines.loading import ledger
from pipelines.loading.ledger import Covered, Entry
from pipelines.loading.rows import PARTITION_COLUMN
from pipelines.loading.steps import step
from pipelines.loading.work import Facts
from resources.errors import CommitRefused, CommitUnknown, FileRefused, LakeUnavailable
from resources.lake import Lake, filesystem


def committable(facts: Sequence[Facts], covered: Covered) -> list[Facts]:
    """The slices that adjoin what is covered with no failed one between; `facts` are in order of partition and offset.

    Going on from the cursor, that is all before a partition's first failure; going back from its start (a backfill),
    all after the last.
    """
    older = [one for one in facts if one.id in covered and one.stop <= covered[one.id][0]]
    newer = [one for one in facts if not (one.id in covered and one.stop <= covered[one.id][0])]
    return [*reversed(list(_until_failure(reversed(older)))), *_until_failure(newer)]


def _until_failure(facts: Iterable[Facts]) -> Iterator[Facts]:
    failed = set()
    for one in facts:
        if one.failure:
            failed.add(one.id)
        elif one.id not in failed:
            yield one


def spans(covered: Covered, facts: Iterable[Facts]) -> Covered:
    """What is covered once `facts` are committed."""
    after = dict(covered)
    for one in facts:
        start, stop = after.get(one.id, (one.start, one.stop))
        after[one.id] = (min(start, one.start), max(stop, one.stop))
    return after


def commit(lake: Lake, table: DeltaTable, entry: Entry, facts: Sequence[Facts]) -> int:
    """Write `entry` with the files of `facts`; the version it became.

    Args:
        lake: where the table is.
        table: the handle the cursor was read from. It must not have been opened again since.
        entry: what the commit holds.
        facts: the slices behind `entry.ranges`.

    Raises:
        FileRefused: a file is missing or has another size.
        CommitRefused: another run was first.
        CommitUnknown: the call failed, and so did every attempt to see whether it landed.
    """
    check_files(lake, table.table_uri, entry, facts)
    step("files checked")
    # Also where a backfill leaves the cursor as it is: naming it makes rivals collide.
    touched = sorted({one.id for one in facts})
    transactions = [Transaction(entry.topic.app_id(id_), entry.covered[id_][1]) for id_ in touched]
    properties = CommitProperties(custom_metadata={ledger.KEY: entry.to_json()}, app_transactions=transactions)
    step("before log entry")
    try:
        table.create_write_transaction(
            [_add(one) for one in facts if one.path],
            mode="append",
            schema=table.schema(),
            partition_by=[PARTITION_COLUMN],
            commit_properties=properties,
        )
    except (DeltaError, OSError) as error:
        return _settled(lake, table.table_uri, entry, error)
    step("after log entry")
    table.update_incremental()
    return next(version for version, one in ledger.entries(lake, table) if one.commit == entry.commit)


def check_files(lake: Lake, uri: str, entry: Entry, facts: Sequence[Facts]) -> None:
    """Every named file is there with the size its worker wrote: deltalake would take a ghost (L07).

    Raises:
        FileRefused: naming the file and its range.
    """
    sizes = {one.path: one.size for one in facts if one.path}
    for info in filesystem(uri, lake.options).get_file_info(list(sizes)):
        expected = sizes[info.path]
        if info.type != pafs.FileType.File or info.size != expected:
            found = f"has {info.size} bytes" if info.type == pafs.FileType.File else "is not there"
            raise FileRefused(f"the data file {info.path} {found}, its worker wrote {expected}", entry.topic.where)


def _add(facts: Facts) -> AddAction:
    assert facts.path is not None
    folder = facts.path.partition("/")[0]
    same = {"partition": facts.partition}
    if facts.broker is not None:
        same["broker"] = facts.broker
    stats = {
        "numRecords": facts.rows,
        "minValues": {**same, "offset": facts.first},
        "maxValues": {**same, "offset": facts.last},
        "nullCount": {"broker": facts.rows if facts.broker is None else 0, "partition": 0, "offset": 0},
    }
    return AddAction(
        path=facts.path,
        size=facts.size,
        partition_values={PARTITION_COLUMN: folder.removeprefix(f"{PARTITION_COLUMN}=")},
        modification_time=int(datetime.now(UTC).timestamp() * 1000),
        data_change=True,
        stats=json.dumps(stats),
    )


def _settled(lake: Lake, uri: str, entry: Entry, error: Exception) -> int:
    """The version of `entry` if it landed after all, though its call failed."""
    try:
        table = lake.open(uri)
        found = {one.commit: (version, one) for version, one in ledger.entries(lake, table)} if table else {}
    except LakeUnavailable as blind:
        raise CommitUnknown(f"the commit failed ({error}) and the table cannot be read", entry.topic.where) from blind
    if entry.commit in found:
        return found[entry.commit][0]
    if isinstance(error, CommitFailedError):
        rival = next((one.run for _, one in found.values()), "another writer")
        raise CommitRefused(f"run {rival} moved the cursor first; run again", entry.topic.where) from error
    raise LakeUnavailable(f"the commit did not land: {error}", entry.topic.where) from error
