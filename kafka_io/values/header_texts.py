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
    items, rows = headers.flatten(), pc.list_parent_indices(headers)
    keys, contents = pc.struct_field(items, "key"), pc.struct_field(items, "value")
    for name in names:
        is_named = pc.equal(keys, name)
        texts, _ = texts_of(contents.filter(is_named))
        of_rows = rows.filter(is_named).to_numpy()
        places = np.full(len(headers), -1)
        places[of_rows] = np.arange(len(of_rows))  # of an index that is repeated, numpy keeps the last value
        yield texts.take(pa.array(places, mask=places < 0))
