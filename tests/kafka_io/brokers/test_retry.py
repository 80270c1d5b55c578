"""The retry loop, with a `sleep` that only records the pauses."""

import logging

import pytest

import resources.kafka
from kafka_io.brokers.connection import RetryPolicy
from kafka_io.brokers.retry import FIRST_CONTACT_S, MIN_PAUSE_S, Backoff, FirstContact, retrying
from kafka_io.errors import ConnectionLost, Corrupt, KafkaIOError, LeaderMoved, Where
from resources.settings.settings import Caps


class Failing:
    """A function that raises `errors` one after the other, and then succeeds."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.calls = 0

    def __call__(self) -> str:
        """Raise the next error, or succeed."""
        self.calls += 1
        if self.errors:
            raise self.errors.pop(0)
        return "done"


def test_a_call_that_succeeds_is_made_once_without_a_pause() -> None:
    act, pauses = Failing(), list[float]()
    assert retrying(act, Backoff(), sleep=pauses.append) == "done"
    assert (act.calls, pauses) == (1, [])


def test_a_call_is_repeated_after_retriable_errors() -> None:
    act, pauses = Failing(ConnectionLost("1"), ConnectionLost("2")), list[float]()
    assert retrying(act, Backoff(attempts=3), sleep=pauses.append) == "done"
    assert (act.calls, len(pauses)) == (3, 2)


@pytest.mark.parametrize("attempts", [1, 2, 7])
def test_the_last_error_is_raised_when_the_attempts_are_used_up(attempts: int) -> None:  # fault W03
    act, pauses = Failing(*(ConnectionLost(str(number)) for number in range(1, 100))), list[float]()
    with pytest.raises(ConnectionLost, match=f"^{attempts}$"):
        retrying(act, Backoff(attempts=attempts), sleep=pauses.append)
    assert (act.calls, len(pauses)) == (attempts, attempts - 1)


@pytest.mark.parametrize("error", [Corrupt("not ours"), KafkaIOError("whatever"), ValueError("a bug")])
def test_an_error_that_is_not_retriable_is_raised_at_once(error: Exception) -> None:
    act = Failing(error)
    with pytest.raises(type(error)) as raised:
        retrying(act, Backoff(), sleep=lambda _: None)
    assert (raised.value, act.calls) == (error, 1)


def test_pauses_double_up_to_the_maximum_with_jitter_down_to_half() -> None:
    backoff = Backoff(first_s=0.2, max_s=5.0)
    for failures, longest in enumerate([0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0], start=1):
        pauses = [backoff.pause_s(failures) for _ in range(200)]
        assert max(MIN_PAUSE_S, longest / 2) <= min(pauses)
        assert max(pauses) <= longest
        assert len(set(pauses)) > 1


@pytest.mark.parametrize("election_s", [9.5, 18.0], ids=["kraft", "zookeeper"])
def test_the_default_retries_outlast_the_default_election_of_a_leader(  # fault N13
    election_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The default time after which a cluster misses a killed broker: 9 s with KRaft, 18 s with ZooKeeper."""
    monkeypatch.setattr("random.uniform", lambda shortest, _longest: shortest)
    waited_s = 0.0

    def sleep(seconds: float) -> None:
        nonlocal waited_s
        waited_s += seconds

    def ask() -> str:
        if waited_s < election_s:
            raise LeaderMoved("the partition has no leader")
        return "the new leader"

    policies = [RetryPolicy(), resources.kafka._retry_policy(Caps())]
    for policy in policies:
        waited_s = 0.0
        assert retrying(ask, policy.backoff, sleep=sleep) == "the new leader"


def test_no_error_is_retried_more_than_ten_times_a_second() -> None:  # fault W13
    backoff = Backoff(attempts=10_000, first_s=0.1, max_s=0.1)
    assert min(backoff.pause_s(failures) for failures in range(1, 10_000)) >= 0.1


def test_a_thousand_failures_still_have_a_pause() -> None:  # fault B12
    assert Backoff(max_s=5.0).pause_s(10**9) <= 5.0


@pytest.mark.parametrize("settings", [{"attempts": 0}, {"first_s": 0.01}, {"max_s": 0.0}, {"first_s": -1.0}])
def test_a_back_off_that_would_flood_a_broker_is_refused(settings: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="a back-off needs"):
        Backoff(**settings)  # type: ignore[arg-type] # attempts is a whole number in the table above


class Clock:
    """A clock that only pauses move."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        monkeypatch.setattr("kafka_io.brokers.retry.time.monotonic", lambda: self.now)

    def pass_by(self, seconds: float) -> None:
        """Move the clock."""
        self.now += seconds


def unreachable(clock: Clock, *, after_s: float) -> KafkaIOError:
    """The error of an attempt that takes so long."""
    clock.pass_by(after_s)
    return ConnectionLost("no answer", Where(broker="-1@kafka1:9092"))


def test_the_first_failure_of_a_first_contact_is_one_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:  # fault F02
    contact, where = FirstContact(), Where(broker="-1@kafka1:9092")
    for _topic in range(3):
        with pytest.raises(ConnectionLost):
            retrying(Failing(*[ConnectionLost("closed", where)] * 99), Backoff(), sleep=lambda _: None, contact=contact)
    assert caplog.record_tuples == [
        (
            "kafka_io.brokers.retry",
            logging.WARNING,
            "cannot reach kafka1:9092 (closed), trying again (2 of 12, up to 60 s)",
        )
    ]


@pytest.mark.parametrize("is_made", [True, False])
def test_a_first_contact_takes_a_limited_time(is_made: bool, monkeypatch: pytest.MonkeyPatch) -> None:  # fault F02
    clock, begun = Clock(monkeypatch), list[float]()
    contact = FirstContact("kafka1:9092", is_made=is_made)

    def act() -> None:
        begun.append(clock.now)
        raise unreachable(clock, after_s=32.0)

    with pytest.raises(ConnectionLost):
        retrying(act, Backoff(attempts=12), sleep=clock.pass_by, contact=contact)
    assert len(begun) == (12 if is_made else 2)
    assert is_made or max(begun) < 1000.0 + FIRST_CONTACT_S
    # The time is that of the whole contact: another topic does not wait for it again.
    begun.clear()
    with pytest.raises(ConnectionLost):
        retrying(act, Backoff(attempts=12), sleep=clock.pass_by, contact=contact)
    assert len(begun) == (12 if is_made else 1)


def test_no_warning_appears_without_another_attempt(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(ConnectionLost):
        retrying(Failing(ConnectionLost("1")), Backoff(attempts=1), contact=FirstContact("kafka1:9092"))
    assert not caplog.records
