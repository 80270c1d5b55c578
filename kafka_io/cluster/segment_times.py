"""When a segment of a log was last written to, of brokers that tell no times: narrowed down by asking.

See [kafka-0.7: OFFSETS].

Before 0.10 a broker can be asked which segments were last written to at a time or before, and for nothing nearer. So
the time is looked for among ages that are each a half per cent older than the one before, from a second to ten years:
twelve questions find it. The older end of what is left is told: a segment never seems safer than it is.
"""

import math
from collections.abc import Callable, Mapping
from typing import TypeVar

from kafka_io.errors import KafkaIOError

KeyT = TypeVar("KeyT")

QUESTIONS = 12
_STEPS = 2**QUESTIONS
_YOUNGEST_MS, _OLDEST_MS = 1000.0, 10 * 365 * 86_400 * 1000.0
_GROWTH = math.log(_OLDEST_MS / _YOUNGEST_MS) / _STEPS

AskSegmentStarts = Callable[[Mapping[KeyT, int]], Mapping[KeyT, int | KafkaIOError | None]]
"""Of each partition, the start of the newest segment last written to at that time (ms) or before; None if none was."""


def last_written(
    segments: Mapping[KeyT, int], ask: AskSegmentStarts[KeyT], *, now_ms: int
) -> dict[KeyT, int | KafkaIOError]:
    """When the segments of these starts, one of each partition, were last written to: in ms, at most 0.5 % too old.

    Of segments whose times are out of order, as in logs that were copied, it may be the time of a later one that is
    older. What is older than ten years is told as if it were that old.
    """
    young, old = dict.fromkeys(segments, 0), dict.fromkeys(segments, _STEPS)
    failed: dict[KeyT, KafkaIOError] = {}
    for _ in range(QUESTIONS):
        middle = {key: (young[key] + old[key]) // 2 for key in segments if key not in failed}
        told = ask({key: _time_ms(step, now_ms) for key, step in middle.items()}) if middle else {}
        for key, start in told.items():
            if isinstance(start, KafkaIOError):
                failed[key] = start
            elif start is not None and start >= segments[key]:
                young[key] = middle[key]
            else:
                old[key] = middle[key]
    return {key: failed.get(key) or _time_ms(old[key], now_ms) for key in segments}


def segment_of(offset: int, starts: tuple[int, ...]) -> int | None:
    """The start of the segment that holds `offset`, or of the first; `starts` are the log's end and starts, descending.

    None where nothing was written at `offset` yet.
    """
    if not starts or offset >= starts[0]:
        return None
    return next((start for start in starts if start <= offset), starts[-1])


def _time_ms(step: int, now_ms: int) -> int:
    return max(0, now_ms - math.ceil(_YOUNGEST_MS * math.exp(_GROWTH * step)))
