"""How JSON fields are read whose type alone does not decide it: an entry in the metadata of the field says so."""

from enum import StrEnum

import pyarrow as pa

from kafka_io.values.columns import described

JSON_READING = b"json"
"""Key of the metadata: one of JsonReading."""


class JsonReading(StrEnum):
    """A way to read a field whose type alone does not decide it."""

    TEXT = "text"  # a string column holds any value as its own JSON text, as the producer wrote it
    EPOCH_SECONDS = "epoch-s"  # a timestamp is an integer since 1970-01-01
    EPOCH_MILLIS = "epoch-ms"
    EPOCH_MICROS = "epoch-us"
    EPOCH_NANOS = "epoch-ns"
    EPOCH_DAYS = "epoch-days"  # a date is an integer since 1970-01-01
    TIME_MILLIS = "time-ms"  # a long is the time of day in microseconds, read from an integer of this unit
    TIME_MICROS = "time-us"
    TIME_NANOS = "time-ns"
    DECIMAL_BYTES = "decimal-bytes"  # a decimal is the base64 of the bytes of its unscaled number, or a number


class JsonNumbers(StrEnum):
    """Who chose the types of the columns for numbers. This decides which other numbers the columns accept."""

    STRICT = "strict"
    """Whoever calls the decoder: a long holds integers without fraction and exponent, and a double rounds."""
    DECLARED = "declared"
    """A schema or the settings: a long also holds 1.0 and 1e2, which are integers in a JSON Schema."""
    INFERRED = "inferred"
    """A sample: a double refuses integers that it would round, and reports other numbers with more than 17 digits."""


def reading_of(field: pa.Field) -> JsonReading | None:
    """The reading of a field; None if its type alone says it."""
    reading = (field.metadata or {}).get(JSON_READING)
    return None if reading is None else JsonReading(reading.decode())


def json_field(name: str, kind: pa.DataType, reading: JsonReading | None = None, comment: str = "") -> pa.Field:
    """A nullable field that is read in this way."""
    field = described(name, kind, comment=comment)
    if reading is None:
        return field
    return field.with_metadata({**(field.metadata or {}), JSON_READING: reading.value.encode()})


def json_text(name: str, comment: str = "") -> pa.Field:
    """A field that holds any value as its JSON text."""
    return json_field(name, pa.string(), JsonReading.TEXT, comment)
