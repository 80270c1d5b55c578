"""Frames of Avro values whose schema is in a file instead of a registry.

    single object   C3 01 | 8 bytes of the schema's fingerprint | body
    AWS Glue        03 00 | 16 bytes of the schema's UUID | body
    Azure           00 00 00 00 | the schema's id in 32 hexadecimal digits | body

So all values of one schema begin with the same bytes. A value that begins with other bytes has another schema. It is
refused, because the schema of the file could give it wrong fields without an error.
"""

import re
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kafka_io.values.arrays import bodies_of
from kafka_io.values.avro.fingerprint import fingerprint
from kafka_io.values.avro.schema import AvroType
from kafka_io.values.decoding import FailedValue
from kafka_io.values.framing import SchemaFrames

SCHEMA_ID = 0
"""The id that the only schema gets."""
_COMPRESSED_GLUE = re.compile(rb"\x03\x05.{16}", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Frame:
    """A kind of frame.

    Args:
        words: how messages call a value with this frame.
        magic: its first bytes.
        id_name: how messages call the id of the schema.
        pattern: matches the beginning of a value that has the frame; its group is the id.
        id_text: the id as text.
    """

    words: str
    magic: bytes
    id_name: str
    pattern: re.Pattern[bytes]
    id_text: Callable[[bytes], str]


_FRAMES: Mapping[str, _Frame] = {
    "single_object": _Frame(
        words="a single object of Avro",
        magic=b"\xc3\1",
        id_name="fingerprint",
        pattern=re.compile(rb"\xc3\x01(.{8})", re.DOTALL),
        id_text=bytes.hex,
    ),
    "glue": _Frame(
        words="a value of AWS Glue's registry",
        magic=b"\3\0",
        id_name="UUID",
        pattern=re.compile(rb"\x03\x00(.{16})", re.DOTALL),
        id_text=lambda data: str(uuid.UUID(bytes=data)),
    ),
    "azure": _Frame(
        words="a value of Azure's registry",
        magic=bytes(4),
        id_name="id",
        pattern=re.compile(rb"\0{4}([0-9a-f]{32})"),
        id_text=bytes.decode,
    ),
}
"""The kinds of frames, by their names in the settings."""


class SchemaPrefix:
    """The bytes with which each value begins whose schema is that of a file.

    Args:
        frame: as `avro_frame` in the settings: empty for values without a frame, "single_object", or "glue" or "azure"
            with a colon and the id of the schema.
        schema: the schema.
    """

    def __init__(self, frame: str, schema: AvroType) -> None:
        name, _, text = frame.partition(":")
        self._frame = _FRAMES[name] if frame else None
        ids = {"single_object": lambda: fingerprint(schema), "glue": lambda: uuid.UUID(text).bytes}
        self._id = ids.get(name, text.encode)()
        self._bytes = self._frame.magic + self._id if self._frame else b""

    def frames(self, values: pa.BinaryArray) -> SchemaFrames:
        """The frames of the values. Each value without a failure has the id SCHEMA_ID."""
        _, starts, _ = bodies_of(values)
        refused = self._refused(values)
        starts[starts >= 0] += len(self._bytes)
        starts[refused] = -1
        ids = np.where(starts < 0, -1, SCHEMA_ID).astype(np.int32)
        failures = [FailedValue(row=row, reason=self._reason(values[row].as_py())) for row in refused.tolist()]
        return SchemaFrames(ids=ids, starts=starts, failures=failures)

    def _refused(self, values: pa.BinaryArray) -> npt.NDArray[np.int64]:
        """The rows whose values begin with other bytes."""
        has_prefix = pc.fill_null(pc.starts_with(values, self._bytes), fill_value=True)
        return np.flatnonzero(~has_prefix.to_numpy(zero_copy_only=False))

    def _reason(self, value: bytes) -> str:
        frame = self._frame
        assert frame is not None  # without a frame no value is refused
        named = frame.pattern.match(value)
        if named:
            own, other = frame.id_text(self._id), frame.id_text(named[1])
            return f"the value has the {frame.id_name} {other}, and the schema of `avro_file` has {own}"
        if _COMPRESSED_GLUE.match(value):
            return "the value has the frame of AWS Glue's registry and is compressed, which is not supported"
        return f"the value is not {frame.words}: its first bytes are not {frame.magic.hex(' ').upper()} and an id"

    def explained(self, failure: FailedValue, values: pa.BinaryArray) -> FailedValue:
        """The failure of a body, with the frame that the value may have although the settings name none."""
        value = values[failure.row].as_py()
        names = [] if self._frame else [name for name, frame in _FRAMES.items() if frame.pattern.match(value)]
        if not names:
            return failure
        hint = f"the value begins as {_FRAMES[names[0]].words} does, see `avro_frame`"
        return FailedValue(row=failure.row, reason=f"{failure.reason}; {hint}")
