"""Fetch answers from 0.8 on to Arrow columns, whatever formats their entries have, no Python object per record.

Formats 0, 1 and 2 may follow each other in one partition, for its log keeps what each broker version wrote (R28). A
batch is decoded whole or not at all; an Arrow batch ends only between entries. Every offset of the range that was read
is a row or counted as a gap: rows + gaps = next_offset - at.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from kafka_io.compression import Bytes
from kafka_io.errors import NOWHERE, TooLarge, Where, WireError, placing
from kafka_io.records.batch_entries import read_batches
from kafka_io.records.build import Record, log_messages, record_batch
from kafka_io.records.columns import DEFAULT_LIMITS, Decoded, Limits
from kafka_io.records.entries import Asked, Entries
from kafka_io.records.filling import Filling
from kafka_io.records.message_entries import read_messages
from kafka_io.records.schema import COLUMNS
from kafka_io.records.transactions import Aborted, AbortedRange

COMPACTED = "compacted"

_INT32_MAX = 2**31 - 1
_LIKELY_RATIO = 4  # of compression
_Reader = Callable[[Entries, Filling, Aborted, Limits], Iterator[None]]
# By magic; what has another, or none yet, is for the last one to judge.
_READERS: dict[int | None, _Reader] = {0: read_messages, 1: read_messages, 2: read_batches}


class Decoder:
    """Decodes one fetch answer after the other; its batches end where they are full, not where an answer does."""

    def __init__(
        self,
        columns: Sequence[str] = COLUMNS,
        *,
        limits: Limits = DEFAULT_LIMITS,
        where: Where = NOWHERE,
        likely_bytes: int | None = None,
    ) -> None:
        """`likely_bytes` is what all columns may come to, if that is less than a batch. For the rest see `decode`."""
        self._limits = limits
        self._where = where
        self._filling = Filling(
            columns,
            likely_bytes=limits.batch_bytes if likely_bytes is None else min(limits.batch_bytes, likely_bytes),
            most_text_bytes=limits.max_decompressed_bytes,
        )
        self._start: int | None = None
        self._next = 0
        self._gaps: Counter[str] = Counter()

    def feed(self, data: Bytes, asked: Asked, *, aborted: Sequence[AbortedRange] = ()) -> Iterator[Decoded]:
        """The batches that `data` makes full. Each call goes on where the last one ended; for the rest see `decode`.

        After an error it is begun anew: what was read since the last batch is to be asked for again.
        """
        if len(data) + self._limits.batch_bytes > _INT32_MAX:
            sentence = f"{len(data)} bytes to decode at once: with batch_bytes they must stay below 2 GiB"
            raise TooLarge(sentence, self._where)
        if self._start is None:
            self._start = asked.at
        entries, transactions = Entries(data, asked, self._where), Aborted(aborted)
        try:
            while not entries.ended:
                for _ in _READERS.get(entries.magic, read_batches)(entries, self._filling, transactions, self._limits):
                    if self._filling.size_bytes >= self._limits.batch_bytes:
                        yield self._take(entries)
        except WireError:
            # The columns hold a piece of what is wrong: none of it is given out.
            self._filling.forget()
            self._start, self._gaps = None, Counter()
            raise
        self._note(entries)

    def flush(self) -> Iterator[Decoded]:
        """The last batch, if anything was read since the one before."""
        if self._start is not None and self._next > self._start:
            yield self._decoded()

    def _take(self, entries: Entries) -> Decoded:
        self._note(entries)
        return self._decoded()

    def _note(self, entries: Entries) -> None:
        self._next = entries.next
        self._gaps += entries.gaps
        entries.gaps = Counter()

    def _decoded(self) -> Decoded:
        assert self._start is not None
        start = self._start
        gaps, self._gaps = self._gaps, Counter()
        gaps[COMPACTED] = self._next - start - self._filling.rows - gaps.total()
        self._start = self._next
        with placing(self._where.at(start)):
            return Decoded(self._filling.take_batch(), self._next, +gaps)


def decode(
    data: Bytes,
    asked: Asked,
    *,
    columns: Sequence[str] = COLUMNS,
    aborted: Sequence[AbortedRange] = (),
    limits: Limits = DEFAULT_LIMITS,
    where: Where = NOWHERE,
) -> Iterator[Decoded]:
    """The records of `data` as batches of these `columns` of `schema.SCHEMA`; no batch when it holds no whole entry.

    Args:
        data: the entries of a fetch answer; a tail that is cut is left for the next fetch (R02).
        asked: the offsets to return.
        columns: others cost nothing, but what they hold is not checked beyond its bounds: of headers, nothing is.
        aborted: the transactions to leave out, (producer id, first offset) each, as a read-committed fetch tells them.
        limits: what it may cost; `max_depth` is 1 for these formats.
        where: the place of `data`; errors add the offset.

    Raises:
        Corrupt: a length, checksum, count, varint or offset that cannot be right, or compressed data that cannot be
            read.
        Unsupported: a magic above 2, or a codec that its format does not have.
        TooLarge: a batch passed a limit, which the sentence names.
        ValueError: columns that are none.
    """
    decoder = Decoder(columns, limits=limits, where=where, likely_bytes=_LIKELY_RATIO * len(data))
    yield from decoder.feed(data, asked, aborted=aborted)
    yield from decoder.flush()


def warm() -> None:
    """Compile the kernels, or load them from numba's cache, before there is data waiting for them."""
    for data in (log_messages([Record()], magic=1, codec=1), record_batch([Record(headers=((b"\xff", None),))])):
        for _ in decode(data, Asked(at=0)):
            pass
