"""Headers of records as texts: CloudEvents in binary mode, and other protocols, describe an event in headers."""

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_io.values.text import texts_of


def header_texts(headers: pa.ListArray, names: Iterable[str]) -> Iterator[pa.StringArray]:
    """For each name, the content of the last header of this name in each record, as `Headers.lastHeader` of Java.

    It is null if the record has no such header, if its content is null, and if its content is not UTF-8.

    >>> kind = pa.list_(pa.struct({"key": pa.string(), "value": pa.binary()}))
    >>> records = pa.array([[{"key": "ce_id", "value": b"7"}], None], kind)
    >>> [texts.to_pylist() for texts in header_texts(records, ["ce_id"])]
    [['7', None]]
    """
    for contents in last_headers(headers, names):
        texts, _ = texts_of(contents)
        yield texts


def last_headers(headers: pa.ListArray, names: Iterable[str]) -> Iterator[pa.BinaryArray]:
    """Yield for each name the last header of each record with this name: its content, or null without such a header."""
    items, rows = headers.flatten(), pc.list_parent_indices(headers).to_numpy()
    keys, contents = pc.struct_field(items, "key"), pc.struct_field(items, "value")
    for name in names:
        is_named = pc.fill_null(pc.equal(keys, name), fill_value=False)
        chosen = np.flatnonzero(is_named.to_numpy(zero_copy_only=False))
        places = np.full(len(headers), -1)
        places[rows[chosen]] = chosen  # of an index that is repeated, numpy keeps the last value
        yield contents.take(pa.array(places, mask=places < 0))
