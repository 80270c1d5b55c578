"""Checks data files before they are committed."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import NoReturn

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from kafka_io.errors import Where
from pipelines.ledger.slice_facts import SliceFacts
from resources.errors import FileRefused
from resources.stores import durable
from resources.stores.lake import each_of, filesystem, lake_errors

_FOOTERS_AT_ONCE = 8


def check_files(uri: str, options: Mapping[str, str], where: Where, facts: Sequence[SliceFacts]) -> None:
    """Check that every file of `facts` exists, with the size and the rows that its worker wrote (fault L07).

    deltalake itself would commit a file that does not exist. Files with exact sets have the right size.

    Raises:
        FileRefused: a file is missing or different.
    """
    by_path = {file.path: file for slice_facts in facts for file in slice_facts.files}
    exact = [stored for slice_facts in facts for stored in slice_facts.range.exact.values() if stored.path]
    sizes = {stored.path: stored.size for stored in exact}
    if durable.local_path(uri) is not None:
        sizes |= {path: file.size for path, file in by_path.items()}
    if sizes:
        _check_sizes(filesystem(uri, options), uri, where, sizes)
    # In an object store the footer is read where it is in a file of the expected size, as all readers of the table do:
    # they take the size from the log. A file that is missing or shorter has no footer there. A store replaces or cuts
    # no object by itself, so this one request shows as much as to ask for the size before.
    store = filesystem(uri, options, {path: file.size for path, file in by_path.items()})
    footers = each_of(uri, partial(_footer_rows, store), by_path, at_once=_FOOTERS_AT_ONCE)
    for (path, file), rows in zip(by_path.items(), footers, strict=True):
        if isinstance(rows, Exception):
            _check_sizes(filesystem(uri, options), uri, where, {path: file.size})
            _raise_unreadable(rows, path, uri, where)
        if rows != file.rows:
            raise FileRefused(
                f"the data file {path} holds {rows} rows; its worker wrote {file.rows}; load again", where
            )


def _check_sizes(store: pafs.FileSystem, uri: str, where: Where, expected: Mapping[str, int]) -> None:
    with lake_errors(uri):
        for info in store.get_file_info(list(expected)):
            size = expected[info.path]
            if info.size != size:
                actual = "is not there" if info.size is None else f"has {info.size} bytes"
                raise FileRefused(f"the data file {info.path} {actual}; its worker wrote {size}; load again", where)


def _footer_rows(store: pafs.FileSystem, path: str) -> int | Exception:
    """The number of rows that the footer of a file says, or why it cannot be read."""
    try:
        with store.open_input_file(path) as file:
            return int(pq.read_metadata(file).num_rows)
    except (pa.ArrowException, OSError) as error:
        return error


def _raise_unreadable(error: Exception, path: str, uri: str, where: Where) -> NoReturn:
    if isinstance(error, pa.ArrowInvalid):
        raise FileRefused(f"the data file {path} is not a Parquet file; load again", where) from error
    with lake_errors(uri):
        raise error
