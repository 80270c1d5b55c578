"""The marker of a lake: the proof that its store can hold commits, the lake's id, and the time of its first use.

The marker is an empty Delta table in the folder MARKER of the lake's root. Its first log entry contains the id and the
time. It is created as every commit is: only if it is absent. So all runs that use a new lake at the same time agree
about its id.
"""

import os
import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from threading import Barrier

import msgspec
import pyarrow as pa
from deltalake import CommitProperties, DeltaTable
from deltalake.exceptions import CommitFailedError, DeltaError

from kafka_io.errors import Where
from resources.errors import StoreUnsafe
from resources.stores import durable
from resources.stores.lake import Lake, filesystem, lake_errors
from resources.stores.object_reads import ObjectReader
from resources.stores.store_options import store_options

MARKER = "_penstock"
"""The folder of the marker. No cluster has this name: names of clusters begin with a letter or a digit."""
_FIRST_ENTRY = f"{MARKER}/_delta_log/{0:020d}.json"
_SCHEMA = pa.schema([pa.field("lake", pa.string())])
_RIVALS = 4
_MAX_RACES = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class LakeMarker:
    """The marker of a lake: its id, and when Penstock first used it.

    `is_new` says that this process found a lake without a marker and without tables.
    """

    lake_id: str
    created: datetime
    is_new: bool = field(default=False, compare=False)


def read_marker(lake: Lake) -> LakeMarker | None:
    """The marker of the lake; None for a lake that Penstock has not used yet.

    Raises:
        LakeUnavailable: the store does not answer.
    """
    with lake_errors(lake.root):
        try:
            lines = ObjectReader(lake.root, lake.options).read(_FIRST_ENTRY).splitlines()
        except FileNotFoundError:
            return None
    [metadata] = [action["metaData"] for line in lines if "metaData" in (action := msgspec.json.decode(line))]
    return LakeMarker(lake_id=metadata["id"], created=datetime.fromtimestamp(metadata["createdTime"] / 1000, UTC))


def use_lake(lake: Lake) -> LakeMarker:
    """The marker of the lake. At the first use the store is probed before the marker is written.

    Raises:
        StoreUnsafe: the store replaces objects that it must keep.
        LakeUnavailable: the store does not answer.
    """
    marker = read_marker(lake)
    if marker is None:
        is_new = not lake.clusters()
        check_put_if_absent(lake)
        lake.create(_below(lake, MARKER), _SCHEMA, partition_by=[], configuration={})
        marker = read_marker(lake)
        assert marker is not None
        marker = replace(marker, is_new=is_new)
    return marker


def check_put_if_absent(lake: Lake) -> None:
    """Check that the store creates an object only if it is absent, when two writers create it at the same time.

    A commit is one such object. Without this promise a late write replaces the commit of another run.

    Raises:
        StoreUnsafe: the store let two writers create the same object, or never refused one of them.
        LakeUnavailable: the store does not answer.
    """
    root = durable.local_path(lake.root)
    with lake_errors(lake.root):
        if root is not None:
            _check_links(root)
        else:
            _check_races(lake)


def _check_links(root: Path) -> None:
    """On a file system, deltalake writes a temporary file and gives it the name of the entry with a hard link."""
    root.mkdir(parents=True, exist_ok=True)
    content, probe = (root / f"{MARKER}-probe-{uuid.uuid4().hex}{suffix}" for suffix in (".new", ""))
    try:
        content.write_bytes(b"probe")
        os.link(content, probe)
        with suppress(FileExistsError):
            os.link(content, probe)
            raise _unsafe(str(root))
    finally:
        for path in (content, probe):
            path.unlink(missing_ok=True)


def _check_races(lake: Lake) -> None:
    """In an object store, several writers create one log entry at the same time.

    deltalake offers no single conditional request. It looks whether the table exists and then creates its first entry,
    so a race shows something only if at least two writers got as far as creating it.
    """
    folder = f"{MARKER}-probe-{uuid.uuid4().hex}"
    try:
        for race in range(_MAX_RACES):
            created, refused = _race(lake, _below(lake, f"{folder}/{race}"))
            if created != 1:
                break
            if refused:
                return
    finally:
        filesystem(lake.root, lake.options).delete_dir(folder)
    raise _unsafe(lake.root)


def _race(lake: Lake, uri: str) -> tuple[int, int]:
    """Let several writers create the first entry of a table; returns how many did, and how many the store refused."""
    start = Barrier(_RIVALS)

    def create(_writer: int) -> str:
        start.wait()
        try:
            DeltaTable.create(
                uri,
                _SCHEMA,
                storage_options=store_options(lake.options),
                commit_properties=CommitProperties(max_commit_retries=0),
            )
        except CommitFailedError:
            return "refused"
        except DeltaError as error:
            if "already exists" not in str(error):
                raise
            return "late"
        return "created"

    with ThreadPoolExecutor(_RIVALS) as writers:
        outcomes = list(writers.map(create, range(_RIVALS)))
    return outcomes.count("created"), outcomes.count("refused")


def _unsafe(root: str) -> StoreUnsafe:
    return StoreUnsafe(
        f"the store of {root} lets a second writer replace an object that must be created only once, so one run could "
        "replace the commit of another; docs/object-stores.md lists what a store must do, and the options for S3",
        Where(),
    )


def _below(lake: Lake, path: str) -> str:
    return "/".join((lake.root.rstrip("/"), path))
