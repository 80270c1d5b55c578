"""When segments were last written to is narrowed down by asking; what is told is never younger than the truth."""

from collections.abc import Mapping

import pytest

from kafka_io.cluster.segment_times import QUESTIONS, last_written, segment_of
from kafka_io.errors import Corrupt, KafkaIOError

NOW_MS = 1_800_000_000_000
DAY_MS = 86_400_000


class Log:
    """A log's segments by start, with the times they were last written to; it counts what it is asked."""

    def __init__(self, **written: dict[int, int]) -> None:
        self.written = written
        self.asked: list[Mapping[str, int]] = []

    def __call__(self, times: Mapping[str, int]) -> dict[str, int | KafkaIOError | None]:
        """The starts of their newest segments by then."""
        self.asked.append(times)
        return {key: self._newest(self.written[key], time_ms) for key, time_ms in times.items()}

    @staticmethod
    def _newest(written: dict[int, int], time_ms: int) -> int | None:
        return max((start for start, at in written.items() if at <= time_ms), default=None)


@pytest.mark.parametrize("age_ms", [0, 900, 1500, 60_000, 3_600_000, DAY_MS, 7 * DAY_MS, 900 * DAY_MS])
def test_it_is_found_in_few_questions_and_never_told_too_young(age_ms: int) -> None:
    log = Log(one={0: NOW_MS - 1000 * DAY_MS, 700: NOW_MS - age_ms, 900: NOW_MS})
    found = last_written({"one": 700}, log, now_ms=NOW_MS)["one"]
    assert isinstance(found, int)
    assert len(log.asked) == QUESTIONS
    assert age_ms <= NOW_MS - found <= max(age_ms, 1000) * 1.005 + 1


def test_many_are_asked_for_together() -> None:
    log = Log(a={0: NOW_MS - DAY_MS}, b={5: NOW_MS - 9 * DAY_MS})
    found = last_written({"a": 0, "b": 5}, log, now_ms=NOW_MS)
    days = {key: round((NOW_MS - at) / DAY_MS, 1) for key, at in found.items() if isinstance(at, int)}
    assert days == {"a": 1.0, "b": 9.0}
    assert [set(times) for times in log.asked] == [{"a", "b"}] * QUESTIONS


def test_a_broker_whose_clock_is_ahead_writes_now() -> None:
    found = last_written({"one": 0}, Log(one={0: NOW_MS + DAY_MS}), now_ms=NOW_MS)["one"]
    assert found == NOW_MS - 1005


def test_what_is_older_than_ten_years_is_told_as_that_old() -> None:
    found = last_written({"one": 0}, Log(one={0: 1}), now_ms=NOW_MS)["one"]
    assert isinstance(found, int)
    assert 3649 <= (NOW_MS - found) / DAY_MS <= 3650


def test_an_error_hides_only_what_it_concerns() -> None:
    log = Log(good={0: NOW_MS - DAY_MS})

    def ask(times: Mapping[str, int]) -> dict[str, int | KafkaIOError | None]:
        bad: dict[str, int | KafkaIOError | None] = {"bad": Corrupt("no")} if "bad" in times else {}
        return {**log({key: times[key] for key in times if key != "bad"}), **bad}

    found = last_written({"good": 0, "bad": 0}, ask, now_ms=NOW_MS)
    assert isinstance(found["good"], int)
    assert isinstance(found["bad"], Corrupt)


def test_nothing_is_asked_about_nothing() -> None:
    log = Log()
    assert last_written({}, log, now_ms=NOW_MS) == {}
    assert log.asked == []


@pytest.mark.parametrize(
    ("offset", "start"), [(0, 100), (100, 100), (249, 100), (250, 250), (399, 250), (400, None), (9999, None)]
)
def test_a_segment_holds_what_lies_from_its_start_to_the_next(offset: int, start: int | None) -> None:
    assert segment_of(offset, (400, 250, 100)) == start


@pytest.mark.parametrize("starts", [(), (0,), (70,)])
def test_an_empty_log_holds_nothing(starts: tuple[int, ...]) -> None:
    assert segment_of(70, starts) is None
