"""When segments of a log were last written to, for brokers before 0.10, which keep no timestamps of records.

See [kafka-0.7: OFFSETS]. Such a broker only says which segments were last written to at a given time or before. So the
time is found by bisection among 4,096 ages from a second to ten years, each half a per cent above the one before: this
takes twelve requests. Of the interval that remains, the older end is returned, so a segment never seems younger than it
is, and retention never deletes it sooner than expected.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from kafka_io.errors import KafkaIOError
from kafka_io.messages.list_offsets import LATEST_TIME, MAX_SEGMENTS

KeyT = TypeVar("KeyT")

ROUNDS = 12
_STEPS = 2**ROUNDS
_YOUNGEST_MS, _OLDEST_MS = 1000.0, 10 * 365 * 86_400 * 1000.0
_GROWTH = math.log(_OLDEST_MS / _YOUNGEST_MS) / _STEPS

ListSegments = Callable[[Mapping[KeyT, int], int], Mapping[KeyT, tuple[int, ...] | KafkaIOError]]
"""Asks for the starts of segments that were last written to at a time (ms) or before, newest first.

The arguments are the time of each partition, and how many starts to return. For LATEST_TIME the result is the end of
the log, followed by the starts of all segments.
"""


def segment_times(
    offsets: Mapping[KeyT, int], list_segments: ListSegments[KeyT], *, now_ms: int
) -> dict[KeyT, int | KafkaIOError | None]:
    """When the segment that contains each offset was last written to; None where nothing is written yet.

    The first segment stands for offsets before the log. See `last_written` for the precision.
    """
    answers: dict[KeyT, int | KafkaIOError | None] = {}
    segments: dict[KeyT, int] = {}
    for key, starts in list_segments(dict.fromkeys(offsets, LATEST_TIME), MAX_SEGMENTS).items():
        segment = starts if isinstance(starts, KafkaIOError) else segment_of(offsets[key], starts)
        if isinstance(segment, int):
            segments[key] = segment
        else:
            answers[key] = segment
    return {**answers, **last_written(segments, list_segments, now_ms=now_ms)}


def last_written(
    segments: Mapping[KeyT, int], list_segments: ListSegments[KeyT], *, now_ms: int
) -> dict[KeyT, int | KafkaIOError]:
    """When one segment of each partition, given by its start, was last written to: in ms, at most 0.5 % too old.

    If the times of a log's segments are not in order, as in a copied log, this can be the older time of a later
    segment. A segment older than ten years counts as ten years old.
    """
    young, old = dict.fromkeys(segments, 0), dict.fromkeys(segments, _STEPS)
    errors: dict[KeyT, KafkaIOError] = {}
    for _ in range(ROUNDS):
        middle = {key: (young[key] + old[key]) // 2 for key in segments if key not in errors}
        times = {key: _time_ms(step, now_ms) for key, step in middle.items()}
        for key, starts in (list_segments(times, 1) if times else {}).items():
            if isinstance(starts, KafkaIOError):
                errors[key] = starts
            elif starts and starts[0] >= segments[key]:
                young[key] = middle[key]
            else:
                old[key] = middle[key]
    return {key: errors.get(key) or _time_ms(old[key], now_ms) for key in segments}


def segment_of(offset: int, starts: tuple[int, ...]) -> int | None:
    """The start of the segment that contains `offset`; None if nothing is written there yet.

    `starts` are the end of the log and the starts of its segments, descending. The first segment stands for offsets
    before the log.
    """
    if not starts or offset >= starts[0]:
        return None
    return next((start for start in starts if start <= offset), starts[-1])


def end_of_segment_after(older: tuple[int, ...], edges: Sequence[int]) -> int:
    """The end of the first segment after the one that starts at `older[0]`; of the first segment if that is empty.

    `edges` are the starts of the log's segments and the end of the log, ascending.
    """
    starts = [edge for edge in edges[:-1] if not older or edge > older[0]]
    return starts[1] if starts[1:] else edges[-1]


def _time_ms(step: int, now_ms: int) -> int:
    return max(0, now_ms - math.ceil(_YOUNGEST_MS * math.exp(_GROWTH * step)))
