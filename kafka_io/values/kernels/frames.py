"""The frame before a value that a schema registry's serializer wrote.

    Confluent:  00 | int32 id of the schema, big-endian | body
    AWS Glue:   03 | 00, or 05 if the body is compressed | 16 bytes of UUID | body
    Apicurio:   00 | int64 id, big-endian | body; a Confluent id is never 0
    Avro:       C3 01 | 8 bytes of the schema's fingerprint | body (a single object)

A Protobuf body begins with the path of its message type in the `.proto` file:

    zigzag varint count | one zigzag varint per level: the index of the message among those of its level

A count of 0 stands for the path [0].
"""

from kafka_io.jit.compiling import device_function, kernel
from kafka_io.jit.scalars import BAD_POSITION, ByteArray, Int32s, copy, int32, varint

OK, EMPTY, CUT, BAD_MAGIC, GLUE, GUID, NEGATIVE_ID, BAD_PATH, LONG_ID, SINGLE_OBJECT = range(10)

FRAME_BYTES = 5
_GLUE_VERSION, _GLUE_BYTES, _GLUE_COMPRESSIONS = 3, 18, (0, 5)
_GUID_MAGIC, _GUID_BYTES = 1, 17
_LONG_ID_BYTES = 9
_SINGLE_OBJECT, _SINGLE_OBJECT_BYTES = (0xC3, 0x01), 10
# A `.proto` file nests messages at most 32 levels deep.
_MAX_LEVELS = 32


@kernel
def read_frames(data: ByteArray, ends: Int32s, ids: Int32s, starts: Int32s, failures: Int32s) -> int:
    """Read the frame of each value; returns the number of failures.

    Args:
        data: the values.
        ends: n + 1 positions: the start of the first value, and the end of each.
        ids: output, n ids of schemas; -1 for a value that has none.
        starts: -1 for each value that is null and has no frame; n positions. Output: where each body starts, or -1.
        failures: output, n rows: the row and the status of each value that has no valid frame.
    """
    failed = 0
    for row in range(len(ids)):
        ids[row] = -1
        if starts[row] < 0:
            continue
        start, end = int(ends[row]), int(ends[row + 1])
        status = _status(data, start, end)
        if status == OK:
            ids[row] = int32(data, start + 1)
            starts[row] = start + FRAME_BYTES
        else:
            starts[row] = -1
            failures[2 * failed] = row
            failures[2 * failed + 1] = status
            failed += 1
    return failed


@device_function
def _status(data: ByteArray, start: int, end: int) -> int:
    """OK for a valid frame; otherwise what the value has instead."""
    if start == end:
        return EMPTY
    size = end - start
    first = data[start]
    if first == 0:
        if size < FRAME_BYTES:
            return CUT
        if data[start + 1] >= 0x80:
            return NEGATIVE_ID
        return LONG_ID if size >= _LONG_ID_BYTES and int32(data, start + 1) == 0 else OK
    if first == _GLUE_VERSION and size >= _GLUE_BYTES and data[start + 1] in _GLUE_COMPRESSIONS:
        return GLUE
    if first == _GUID_MAGIC and size >= _GUID_BYTES:
        return GUID
    if size >= _SINGLE_OBJECT_BYTES and first == _SINGLE_OBJECT[0] and data[start + 1] == _SINGLE_OBJECT[1]:
        return SINGLE_OBJECT
    return BAD_MAGIC


@kernel
def read_message_paths(
    data: ByteArray, ends: Int32s, starts: Int32s, paths: ByteArray, path_ends: Int32s, failures: Int32s
) -> int:
    """Copy the path of each Protobuf body, and move the start of the body after it; returns the number of failures.

    Args:
        data: the values.
        ends: as for `read_frames`.
        starts: where each body starts, or -1. Output: where its message starts, or -1 if the path is invalid.
        paths: output, the bytes of the paths; as large as `data`.
        path_ends: output, n + 1 positions in `paths`.
        failures: output, as for `read_frames`.
    """
    failed = used = 0
    path_ends[0] = 0
    for row in range(len(starts)):
        start, end = int(starts[row]), int(ends[row + 1])
        if start >= 0:
            levels, position = varint(data, start, end)
            is_valid = position != BAD_POSITION and 0 <= levels <= _MAX_LEVELS
            level = 0
            while is_valid and level < levels:
                index, position = varint(data, position, end)
                is_valid = position != BAD_POSITION and index >= 0
                level += 1
            if is_valid:
                copy(data, start, position - start, paths, used)
                used += position - start
                starts[row] = position
            else:
                starts[row] = -1
                failures[2 * failed] = row
                failures[2 * failed + 1] = BAD_PATH
                failed += 1
        path_ends[row + 1] = used
    return failed
