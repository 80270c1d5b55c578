"""When segments of brokers before 0.10 were last written to: the partitions of a leader are asked about together."""

from collections.abc import Mapping
from functools import partial

from kafka_io.client.modern.bounds import list_offsets
from kafka_io.client.modern.leading import Answers, Led, Place
from kafka_io.client.modern.link import ModernLink
from kafka_io.client.segment_times import last_written, segment_of
from kafka_io.error_codes import MODERN, error_of
from kafka_io.errors import NOWHERE, Corrupt, KafkaIOError
from kafka_io.messages.list_offsets import LATEST_TIME, ListOffsetsPartitionResponse

_MOST_SEGMENTS = 1_000_000  # a broker keeps the file of every segment open: it cannot have as many


def segment_times(link: ModernLink, led: Led, at: Mapping[Place, int], *, now_ms: int) -> Answers[int | None]:
    """When the segment that holds each offset was last written to (see `last_written`); None at the end of the log."""
    answers: Answers[int | None] = {}
    segments: dict[Place, int] = {}
    told = list_offsets(link, led, dict.fromkeys(at, LATEST_TIME), most=_MOST_SEGMENTS)
    for place, offset in at.items():
        starts = _starts(told.get(place))
        segment = starts if isinstance(starts, KafkaIOError) else segment_of(offset, starts)
        if isinstance(segment, int):
            segments[place] = segment
        else:
            answers[place] = segment
    return {**answers, **last_written(segments, partial(_newest_before, link, led), now_ms=now_ms)}


def _newest_before(link: ModernLink, led: Led, times: Mapping[Place, int]) -> Mapping[Place, int | KafkaIOError | None]:
    told = list_offsets(link, led, times)
    found: dict[Place, int | KafkaIOError | None] = {}
    for place in times:
        starts = _starts(told.get(place))
        found[place] = starts if isinstance(starts, KafkaIOError) else next(iter(starts), None)
    return found


def _starts(answer: ListOffsetsPartitionResponse | None) -> tuple[int, ...] | KafkaIOError:
    if answer is None:
        return Corrupt("an answer without one of the partitions that were asked for")
    return error_of(answer.error_code, NOWHERE, MODERN) or answer.old_style_offsets
