"""Texts: a value is UTF-8 and fills one string column."""

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from kafka_io.values.columns import field_name
from kafka_io.values.decoding import DecodedValues, FailedValue

TEXT_FIELD = "value"
"""The name of the field that a text is."""
_NOT_UTF8 = "the value is not valid UTF-8"


class TextDecoder:
    """Decodes values as UTF-8 into the string column for TEXT_FIELD; other columns are null.

    >>> import pyarrow as pa
    >>> decoder = TextDecoder(pa.schema({"value": pa.string()}))
    >>> decoder.decode(pa.array([b"one", bytes([255])], pa.binary())).rows.to_pylist()
    [{'value': 'one'}, {'value': None}]
    """

    def __init__(self, columns: pa.Schema) -> None:
        self._columns = columns
        names = [column.name for column in columns if field_name(column) == TEXT_FIELD and column.type == pa.string()]
        self._column = names[-1] if names else None

    @property
    def columns(self) -> pa.Schema:
        """The columns that the decoder fills."""
        return self._columns

    def decode(self, values: pa.BinaryArray) -> DecodedValues:
        """The rows of these values."""
        texts, bad = texts_of(values)
        failures = [FailedValue(row=row, reason=_NOT_UTF8) for row in bad]
        arrays = [
            texts if column.name == self._column else pa.nulls(len(values), column.type) for column in self._columns
        ]
        return DecodedValues(rows=pa.RecordBatch.from_arrays(arrays, schema=self._columns), failures=failures)


def texts_of(values: pa.BinaryArray) -> tuple[pa.StringArray, Sequence[int]]:
    """The values as texts, and the indexes of those that are not UTF-8, whose text is null.

    Arrow checks a whole array at once, so bad values are found by halving it.
    """
    bad = list(_not_utf8(values))
    if bad:
        is_bad = pc.is_in(pa.array(range(len(values))), pa.array(bad))
        values = pc.if_else(is_bad, pa.scalar(None, values.type), values)
    return values.cast(pa.string()), bad


def _not_utf8(values: pa.BinaryArray) -> Iterator[int]:
    """The indexes of values that are not UTF-8, in order."""
    spans = [(0, len(values))]
    while spans:
        start, size = spans.pop()
        try:
            values.slice(start, size).cast(pa.string())
        except pa.ArrowInvalid:
            if size == 1:
                yield start
            else:
                spans += [(start + size // 2, size - size // 2), (start, size // 2)]
