"""A decoded value as `penstock tail` shows it. Decoders are slow to import, and only typed topics need them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa


@dataclass(frozen=True, slots=True)
class ShownValue:
    """The fields of a value that are not null, or the reason why it does not decode; neither if it was not decoded."""

    fields: dict[str, Any] | None = None
    error: str | None = None


NOT_DECODED = ShownValue()
ShowValues = Callable[[pa.RecordBatch], Sequence[ShownValue]]
"""Gives the values of a batch of records as kafka_io.records decodes them."""
