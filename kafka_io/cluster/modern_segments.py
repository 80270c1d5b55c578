"""When segments of brokers before 0.10 were last written to, for all partitions of a leader together."""

from collections.abc import Mapping
from functools import partial

from kafka_io.brokers.leaders import PartitionAnswers, PartitionLeaders
from kafka_io.brokers.modern_connection import ModernBrokerConnection
from kafka_io.cluster.bounds import list_offsets
from kafka_io.cluster.segment_times import last_written, segment_of
from kafka_io.error_codes import ErrorCode
from kafka_io.errors import NOWHERE, Corrupt, KafkaIOError
from kafka_io.messages.list_offsets import LATEST_TIME, ListOffsetsPartitionResponse
from kafka_io.model import TopicPartition

_MAX_SEGMENTS = 1_000_000  # a broker keeps the file of every segment open: it cannot have so many


def segment_times(
    link: ModernBrokerConnection, led: PartitionLeaders, at: Mapping[TopicPartition, int], *, now_ms: int
) -> PartitionAnswers[int | None]:
    """When the segment that holds each offset was last written to (see `last_written`); None at the end of the log."""
    answers: PartitionAnswers[int | None] = {}
    segments: dict[TopicPartition, int] = {}
    told = list_offsets(link, led, dict.fromkeys(at, LATEST_TIME), max_offsets=_MAX_SEGMENTS)
    for place, offset in at.items():
        starts = _starts(told.get(place))
        segment = starts if isinstance(starts, KafkaIOError) else segment_of(offset, starts)
        if isinstance(segment, int):
            segments[place] = segment
        else:
            answers[place] = segment
    return {**answers, **last_written(segments, partial(_newest_before, link, led), now_ms=now_ms)}


def _newest_before(
    link: ModernBrokerConnection, led: PartitionLeaders, times: Mapping[TopicPartition, int]
) -> Mapping[TopicPartition, int | KafkaIOError | None]:
    told = list_offsets(link, led, times)
    found: dict[TopicPartition, int | KafkaIOError | None] = {}
    for place in times:
        starts = _starts(told.get(place))
        found[place] = starts if isinstance(starts, KafkaIOError) else next(iter(starts), None)
    return found


def _starts(answer: ListOffsetsPartitionResponse | None) -> tuple[int, ...] | KafkaIOError:
    if answer is None:
        return Corrupt("the answer lacks one of the requested partitions")
    return ErrorCode.error_of(answer.error_code, NOWHERE) or answer.old_style_offsets
