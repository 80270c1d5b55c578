"""The last write to a segment is found in a few requests, and the result is never younger than the truth."""

from collections.abc import Mapping

import pytest

from kafka_io.cluster.segment_times import ROUNDS, last_written, segment_of
from kafka_io.errors import Corrupt, KafkaIOError

NOW_MS = 1_800_000_000_000
DAY_MS = 86_400_000


Starts = tuple[int, ...] | KafkaIOError


class Log:
    """Segments by start, with the times of their last writes; it keeps the times of each request."""

    def __init__(self, **written: dict[int, int]) -> None:
        self.written = written
        self.requests: list[Mapping[str, int]] = []

    def __call__(self, times: Mapping[str, int], max_count: int) -> dict[str, Starts]:
        """The starts of the newest segments at these times."""
        self.requests.append(times)
        return {key: self._starts(self.written[key], time_ms)[:max_count] for key, time_ms in times.items()}

    @staticmethod
    def _starts(written: dict[int, int], time_ms: int) -> tuple[int, ...]:
        return tuple(sorted((start for start, write_ms in written.items() if write_ms <= time_ms), reverse=True))


@pytest.mark.parametrize("age_ms", [0, 900, 1500, 60_000, 3_600_000, DAY_MS, 7 * DAY_MS, 900 * DAY_MS])
def test_the_last_write_is_found_in_few_requests_and_is_never_too_young(age_ms: int) -> None:
    log = Log(**{"clicks-0": {0: NOW_MS - 1000 * DAY_MS, 700: NOW_MS - age_ms, 900: NOW_MS}})
    time_ms = last_written({"clicks-0": 700}, log, now_ms=NOW_MS)["clicks-0"]
    assert isinstance(time_ms, int)
    assert len(log.requests) == ROUNDS
    assert age_ms <= NOW_MS - time_ms <= max(age_ms, 1000) * 1.005 + 1


def test_many_partitions_share_the_requests() -> None:
    log = Log(a={0: NOW_MS - DAY_MS}, b={5: NOW_MS - 9 * DAY_MS})
    times = last_written({"a": 0, "b": 5}, log, now_ms=NOW_MS)
    days = {key: round((NOW_MS - time_ms) / DAY_MS, 1) for key, time_ms in times.items() if isinstance(time_ms, int)}
    assert days == {"a": 1.0, "b": 9.0}
    assert [set(request) for request in log.requests] == [{"a", "b"}] * ROUNDS


def test_a_write_in_the_future_counts_as_a_second_old() -> None:
    time_ms = last_written({"clicks-0": 0}, Log(**{"clicks-0": {0: NOW_MS + DAY_MS}}), now_ms=NOW_MS)["clicks-0"]
    assert time_ms == NOW_MS - 1005


def test_a_segment_older_than_ten_years_counts_as_ten_years_old() -> None:
    time_ms = last_written({"clicks-0": 0}, Log(**{"clicks-0": {0: 1}}), now_ms=NOW_MS)["clicks-0"]
    assert isinstance(time_ms, int)
    assert 3649 <= (NOW_MS - time_ms) / DAY_MS <= 3650


def test_an_error_hides_only_its_own_partition() -> None:
    log = Log(healthy={0: NOW_MS - DAY_MS})

    def list_segments(times: Mapping[str, int], max_count: int) -> dict[str, Starts]:
        failed: dict[str, Starts] = {"failed": Corrupt("no")} if "failed" in times else {}
        return {**log({key: times[key] for key in times if key != "failed"}, max_count), **failed}

    times = last_written({"healthy": 0, "failed": 0}, list_segments, now_ms=NOW_MS)
    assert isinstance(times["healthy"], int)
    assert isinstance(times["failed"], Corrupt)


def test_no_partitions_need_no_request() -> None:
    log = Log()
    assert last_written({}, log, now_ms=NOW_MS) == {}
    assert log.requests == []


@pytest.mark.parametrize(
    ("offset", "start"), [(0, 100), (100, 100), (249, 100), (250, 250), (399, 250), (400, None), (9999, None)]
)
def test_a_segment_contains_the_offsets_from_its_start_to_the_next_start(offset: int, start: int | None) -> None:
    assert segment_of(offset, (400, 250, 100)) == start


@pytest.mark.parametrize("starts", [(), (0,), (70,)])
def test_an_empty_log_has_no_segment_for_an_offset(starts: tuple[int, ...]) -> None:
    assert segment_of(70, starts) is None
