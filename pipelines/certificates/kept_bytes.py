"""Decompresses kept bytes: batches and messages that a load could not decode and left out by choice.

Something in such bytes is damaged, and it may be their header. So what they say of themselves is not believed: if no
codec of their format gives their content back, nobody can search them, and the caller hears of it.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import NamedTuple

from kafka_io.compression import CODECS, CODECS_07, MESSAGE_CODECS, Codec
from kafka_io.errors import KafkaIOError
from kafka_io.records.decoded_batch import DEFAULT_LIMITS
from kafka_io.records.layout import (
    BATCH_ATTRIBUTES_AT,
    BATCH_BYTES,
    BATCH_MAGIC,
    CODEC_MASK,
    ENTRY_BYTES,
    ENTRY_LENGTH_AT,
    HEADER_BYTES,
    LARGEST_MAGIC,
    LENGTH_BYTES,
    MAGIC_AT,
    MESSAGE_ATTRIBUTES_AT,
    MESSAGE_KEY_AT,
    MIN_ENTRY_BYTES,
    MODERN_CODEC_MASK,
)
from pipelines.certificates.searched_texts import NotSearchable

_NAME_OF_07 = re.compile(r"\d+-\d+-\d{20}-\d{20}-")
"""The name of a file with messages of 0.7 begins with a broker and a partition, and that of others with a partition."""
_INT32 = 4


class _Entry(NamedTuple):
    """A batch or message.

    Args:
        codec: the number of its codec; 0 if it says that nothing is compressed.
        codecs: the codecs of its format.
        content: what is compressed.
        has_messages: whether messages are compressed, and not records.
    """

    codec: int
    codecs: Mapping[int, Codec]
    content: memoryview
    has_messages: bool


def decompressed_contents(name: str, data: bytes) -> Iterator[bytes]:
    """The decompressed contents of kept bytes, also of messages that are compressed twice.

    `name` is the name of their file.

    Raises:
        NotSearchable: something that is compressed cannot be decompressed, or it is no batch and no message.
    """
    entries_of = _messages_of_07 if _NAME_OF_07.match(name) else _entries
    waiting = [(0, memoryview(data))]
    while waiting:
        depth, view = waiting.pop()
        if depth > DEFAULT_LIMITS.max_depth:
            raise NotSearchable("messages are compressed too many times")
        for entry in entries_of(view):
            for content in _contents(entry, is_kept=depth == 0):
                yield content
                if entry.codec and entry.has_messages:
                    waiting.append((depth + 1, memoryview(content)))


def _contents(entry: _Entry, *, is_kept: bool) -> Iterator[bytes]:
    """The content, decompressed. If a kept entry says that nothing is compressed, that may be what is damaged."""
    limit = DEFAULT_LIMITS.max_decompressed_bytes
    if entry.codec:
        try:
            yield bytes(entry.codecs[entry.codec].decompress(entry.content, limit))
        except (KafkaIOError, KeyError) as error:
            raise NotSearchable("a kept batch or message cannot be decompressed") from error
    else:
        for number, codec in entry.codecs.items() if is_kept else ():
            with suppress(KafkaIOError):
                if number:
                    yield bytes(codec.decompress(entry.content, limit))


def _entries(view: memoryview) -> Iterator[_Entry]:
    """The batches and messages from Kafka 0.8 on. One with an impossible length reaches to the end."""
    while len(view) > MAGIC_AT:
        magic = view[MAGIC_AT]
        if magic > BATCH_MAGIC:
            raise NotSearchable(f"a kept entry has the magic {magic}")
        end = ENTRY_BYTES + _int32(view, ENTRY_LENGTH_AT)
        entry = view[:end] if MIN_ENTRY_BYTES[magic] <= end <= len(view) else view
        if magic == BATCH_MAGIC:
            codec = _byte(entry, BATCH_ATTRIBUTES_AT + 1) & MODERN_CODEC_MASK
            yield _Entry(codec, CODECS, entry[BATCH_BYTES:], has_messages=False)
        else:
            codec, value = _byte(entry, MESSAGE_ATTRIBUTES_AT) & MODERN_CODEC_MASK, _value(entry, MESSAGE_KEY_AT[magic])
            if codec and value is None:
                raise NotSearchable("the value of a kept message is cut, or its length is damaged")
            yield _Entry(codec, MESSAGE_CODECS[magic], value or view[:0], has_messages=True)
        view = view[len(entry) :]


def _value(message: memoryview, key_at: int) -> memoryview | None:
    """The value of a message, which has the messages that are compressed; None if it cannot be where its sizes say."""
    value_at = key_at + _INT32 + max(0, _int32(message, key_at))
    size = _int32(message, value_at)
    return message[value_at + _INT32 :] if size == len(message) - value_at - _INT32 else None


def _messages_of_07(view: memoryview) -> Iterator[_Entry]:
    """The messages of Kafka 0.7. One with an impossible length reaches to the end."""
    while len(view) > LENGTH_BYTES:
        magic = view[LENGTH_BYTES]
        if magic > LARGEST_MAGIC:
            raise NotSearchable(f"a kept message has the magic {magic}")
        payload, end = LENGTH_BYTES + HEADER_BYTES[magic], LENGTH_BYTES + _int32(view, 0)
        message = view[:end] if payload <= end <= len(view) else view
        codec = _byte(message, LENGTH_BYTES + 1) & CODEC_MASK if magic else 0
        yield _Entry(codec, CODECS_07, message[payload:], has_messages=True)
        view = view[len(message) :]


def _byte(view: memoryview, position: int) -> int:
    """A byte; 0 if the entry is cut before it."""
    return view[position] if position < len(view) else 0


def _int32(view: memoryview, position: int) -> int:
    """A number of four bytes, with a sign; -1 if the entry is cut before it or in it."""
    field = view[position : position + _INT32]
    return int.from_bytes(field, "big", signed=True) if len(field) == _INT32 else -1
