"""Reads the frame before a value, in which serializers of a schema registry write the id of the schema."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kafka_io.values.arrays import bytes_of, marked
from kafka_io.values.decoding import FailedValue
from kafka_io.values.kernels import frames

_REASONS = {
    frames.EMPTY: "the value is empty: it has no frame with the id of a schema",
    frames.CUT: f"the value has fewer than the {frames.FRAME_BYTES} bytes of a frame with the id of a schema",
    frames.BAD_MAGIC: "the value has no frame with the id of a schema: its first byte is not 0",
    frames.GLUE: "the value has the frame of AWS Glue's schema registry: for Avro, set `avro_file` and `avro_frame`",
    frames.GUID: "the value names its schema by GUID (magic 1), which is not supported",
    frames.LONG_ID: "the value has an id of 8 bytes, as Apicurio's serializers write it: set `id_bytes` = 8",
    frames.SINGLE_OBJECT: "the value is a single object of Avro (C3 01, fingerprint): set `avro_file` and `avro_frame`",
    frames.NEGATIVE_ID: "the id of the schema is negative",
    frames.BAD_PATH: "the index path of the Protobuf message is invalid",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaFrames:
    """The frames of an array of values.

    Args:
        ids: the id of each value's schema; -1 if the value is null or its frame is invalid.
        starts: where the body of each value starts in the bytes of the array, or -1 as for `ids`.
        failures: the values whose frame is invalid, in the order of rows.
    """

    ids: npt.NDArray[np.int32]
    starts: npt.NDArray[np.int32]
    failures: Sequence[FailedValue]


@dataclass(frozen=True, slots=True, kw_only=True)
class MessagePaths:
    """Which message type of its `.proto` file each Protobuf value has.

    Args:
        paths: the different paths: the index of the outermost message, of the message inside it, and so on.
        numbers: index in `paths` of each value's path; -1 if the value is null, or its frame or path is invalid.
        starts: where the message of each value starts in the bytes of the array, or -1 as for `numbers`.
        failures: the values whose path is invalid, in the order of rows.
    """

    paths: Sequence[tuple[int, ...]]
    numbers: npt.NDArray[np.int32]
    starts: npt.NDArray[np.int32]
    failures: Sequence[FailedValue]


def read_frames(values: pa.BinaryArray) -> SchemaFrames:
    """The frames of Confluent's serializers."""
    data, ends = bytes_of(values)
    rows = len(values)
    ids, failures = np.empty(rows, np.int32), np.empty(2 * rows, np.int32)
    starts = marked(np.zeros(rows, np.int32), values)
    failed = frames.read_frames(data, ends, ids, starts, failures)
    return SchemaFrames(ids=ids, starts=starts, failures=_failures(failures, failed))


def read_message_paths(values: pa.BinaryArray, framed: SchemaFrames) -> MessagePaths:
    """The paths that Confluent's Protobuf serializer writes between the id and the message."""
    data, ends = bytes_of(values)
    rows = len(values)
    starts, failures = framed.starts.copy(), np.empty(2 * rows, np.int32)
    content, path_ends = np.empty(len(data), np.uint8), np.empty(rows + 1, np.int32)
    failed = frames.read_message_paths(data, ends, starts, content, path_ends, failures)
    buffers = [None, pa.py_buffer(path_ends), pa.py_buffer(content[: path_ends[-1]])]
    # An empty path is that of a value without a message. Values of a topic have few different paths.
    distinct = pa.Array.from_buffers(pa.binary(), rows, buffers).dictionary_encode()
    paths = [_path(path) for path in distinct.dictionary.to_pylist()]
    numbers = np.where(starts < 0, -1, distinct.indices.to_numpy()).astype(np.int32)
    return MessagePaths(paths=paths, numbers=numbers, starts=starts, failures=_failures(failures, failed))


def _path(data: bytes) -> tuple[int, ...]:
    """The indexes of a valid path; none for a value without a message."""
    numbers, shift, number = list[int](), 0, 0
    for byte in data:
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            numbers.append(number >> 1)  # zigzag: indexes are not negative
            number = shift = 0
    return tuple(numbers[1:]) or ((0,) if data else ())


def _failures(failures: npt.NDArray[np.int32], failed: int) -> list[FailedValue]:
    pairs = failures[: 2 * failed].reshape(-1, 2).tolist()
    return [FailedValue(row=row, reason=_REASONS[status]) for row, status in pairs]
