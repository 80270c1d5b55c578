"""Each message that a sender gets is delivered, or reported as failed with the reason."""

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_io.errors import ConnectionLost
from kafka_io.model import BrokerPartition
from kafka_io.producer.callbacks import CallbackHandler, Dispatch, Outcome
from kafka_io.producer.message import Delivered, Message, ProducerClosed, QueueFull, Undelivered
from kafka_io.producer.senders import AsyncSender, BoundedQueue, SyncSender
from kafka_io.producer.settings import Queueing

WAIT_S = 60.0
OpenSender = Callable[..., AsyncSender]


@given(st.lists(st.integers(1, 7)), st.integers(1, 20))
def test_items_come_out_once_and_in_order(sizes: list[int], size: int) -> None:
    queue: BoundedQueue[int] = BoundedQueue(size)
    added = [number for number in range(sum(sizes)) if queue.put(number, timeout_s=0)]
    assert added == list(range(min(sum(sizes), size)))
    queue.close()
    batches = [queue.take(max_items, WAIT_S) for max_items in sizes]
    assert [item for batch in batches for item in batch] == added
    assert all(len(batch) <= max_items for batch, max_items in zip(batches, sizes, strict=True))
    assert queue.take(1, WAIT_S) == []


def test_a_full_batch_does_not_linger() -> None:
    queue: BoundedQueue[int] = BoundedQueue(10)
    with ThreadPoolExecutor(1) as pool:
        batch = pool.submit(queue.take, 2, WAIT_S)
        queue.put(1, timeout_s=0)
        queue.put(2, timeout_s=0)
        assert batch.result(WAIT_S) == [1, 2]


def test_an_incomplete_batch_is_taken_after_the_linger_time() -> None:
    queue: BoundedQueue[int] = BoundedQueue(10)
    queue.put(1, timeout_s=0)
    assert queue.take(2, 0.01) == [1]


def test_join_ends_the_linger_time_and_waits_until_the_items_are_done() -> None:
    queue: BoundedQueue[int] = BoundedQueue(10)
    queue.put(1, timeout_s=0)
    with ThreadPoolExecutor(2) as pool:
        batch = pool.submit(queue.take, 2, WAIT_S)
        joined = pool.submit(queue.join, WAIT_S)
        assert batch.result(WAIT_S) == [1]
        assert not joined.done()
        queue.close()
        assert queue.take(1, WAIT_S) == []
        assert joined.result(WAIT_S)


def test_join_returns_false_while_items_are_not_done() -> None:
    queue: BoundedQueue[int] = BoundedQueue(10)
    queue.put(1, timeout_s=0)
    assert not queue.join(0.0)
    assert queue.drain() == ([], [1])
    assert queue.join(0.0)


def test_put_waits_for_room_and_returns_false_when_the_queue_closes() -> None:
    queue: BoundedQueue[int] = BoundedQueue(1)
    assert queue.put(1, timeout_s=None)
    with ThreadPoolExecutor(1) as pool:
        second = pool.submit(queue.put, 2, timeout_s=None)
        assert queue.take(1, 0) == [1]
        assert second.result(WAIT_S)
        third = pool.submit(queue.put, 3, timeout_s=None)
        queue.close()
        assert third.result(WAIT_S) is False
    assert queue.closed
    assert queue.drain() == ([1], [2])


def test_no_item_of_many_threads_is_lost() -> None:
    queue: BoundedQueue[int] = BoundedQueue(3)
    items: list[int] = []

    def take() -> None:
        while batch := queue.take(2, 0.0):
            items.extend(batch)

    taker = threading.Thread(target=take)
    taker.start()
    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(lambda number: queue.put(number, timeout_s=None), range(400)))
    assert queue.join(WAIT_S)
    queue.close()
    taker.join()
    assert sorted(items) == list(range(400))


def message(number: int) -> Message:
    return Message(topic="clicks", value=b"%d" % number)


def delivered(messages: Sequence[Message]) -> list[Outcome]:
    return [
        Delivered(topic=message.topic, partition=BrokerPartition(None, 0), offset=int(message.value))
        for message in messages
    ]


class Gate:
    """Delivers messages once it is opened; messages with odd numbers fail if `odd` is set."""

    def __init__(self, *, odd: Exception | None = None) -> None:
        self.opened = threading.Event()
        self.entered = threading.Event()
        self.batches: list[int] = []
        self.released = threading.Event()
        self._odd = odd

    def send(self, messages: Sequence[Message]) -> list[Outcome]:
        """Wait until the gate is open, and deliver the messages."""
        self.entered.set()
        self.opened.wait(WAIT_S)
        self.batches.append(len(messages))
        return [
            self._odd if self._odd and int(message.value) % 2 else outcome
            for message, outcome in zip(messages, delivered(messages), strict=True)
        ]


@pytest.fixture
def open_sender() -> Iterator[OpenSender]:
    """Opens senders, and closes them after the test."""
    with ExitStack() as opened:

        def open_(gate: Gate, **settings: object) -> AsyncSender:
            queueing = Queueing(**{"queue_time_ms": 0, **settings})  # type: ignore[arg-type]  # checked where it is made
            sender = AsyncSender(gate.send, queueing, release=gate.released.set, interrupt=gate.opened.set)
            opened.callback(sender._thread.join)
            opened.callback(gate.opened.set)
            opened.callback(sender._queue.close)
            return sender

        yield open_


def ends(futures: Sequence["Future[Delivered]"]) -> list[str | int | None]:
    """The offset of each message, or the name of its error."""
    return [
        type(future.exception(WAIT_S)).__name__ if future.exception(WAIT_S) else future.result().offset
        for future in futures
    ]


def test_a_future_returns_where_its_message_was_stored(open_sender: OpenSender) -> None:
    gate = Gate()
    gate.opened.set()
    sender = open_sender(gate, batch_size=4)
    futures = sender.send_many([message(number) for number in range(10)])
    sender.flush(WAIT_S)
    assert ends(futures) == list(range(10))
    assert max(gate.batches) <= 4
    sender.close(WAIT_S)
    assert gate.released.is_set()


def test_a_failed_message_ends_its_future_and_is_reported_once(open_sender: OpenSender) -> None:
    gate = Gate(odd=ConnectionLost("gone"))
    gate.opened.set()
    sender = open_sender(gate)
    futures = sender.send_many([message(number) for number in range(4)])
    with pytest.raises(Undelivered, match="2 messages were not confirmed; the first error: gone") as raised:
        sender.flush(WAIT_S)
    assert [failure.message.value for failure in raised.value.failures] == [b"1", b"3"]
    assert ends(futures) == [0, "ConnectionLost", 2, "ConnectionLost"]
    sender.close(WAIT_S)


def test_as_many_unreported_failures_as_the_queue_holds_stop_the_sender(open_sender: OpenSender) -> None:
    gate = Gate(odd=ConnectionLost("gone"))
    gate.opened.set()
    sender = open_sender(gate, queue_size=2)
    assert ends([sender.send(message(1)), sender.send(message(3))]) == ["ConnectionLost"] * 2
    sender._queue.join(WAIT_S)
    with pytest.raises(Undelivered):
        sender.send(message(2))
    sender.close(WAIT_S)


def full(sender: AsyncSender, gate: Gate) -> "list[Future[Delivered]]":
    """One message in flight and two in the queue."""
    first = sender.send(message(0))
    assert gate.entered.wait(WAIT_S)
    return [first, sender.send(message(1)), sender.send(message(2))]


def test_a_full_queue_raises(open_sender: OpenSender) -> None:
    gate = Gate()
    sender = open_sender(gate, queue_size=2, batch_size=1, when_full="raise")
    futures = full(sender, gate)
    with pytest.raises(QueueFull, match="queue_size = 2"):
        sender.send(message(3))
    gate.opened.set()
    sender.close(WAIT_S)
    assert ends(futures) == [0, 1, 2]


def test_a_full_queue_drops_the_message_and_reports_it(open_sender: OpenSender) -> None:
    gate = Gate()
    sender = open_sender(gate, queue_size=2, batch_size=1, when_full="drop")
    futures = [*full(sender, gate), sender.send(message(3))]
    gate.opened.set()
    with pytest.raises(Undelivered) as raised:
        sender.close(WAIT_S)
    assert ends(futures) == [0, 1, 2, "QueueFull"]
    assert [failure.message.value for failure in raised.value.failures] == [b"3"]


def test_a_full_queue_blocks_for_the_enqueue_timeout(open_sender: OpenSender) -> None:
    gate = Gate()
    sender = open_sender(gate, queue_size=2, batch_size=1, enqueue_timeout_ms=1)
    futures = full(sender, gate)
    with pytest.raises(QueueFull):
        sender.send(message(3))
    gate.opened.set()
    sender.close(WAIT_S)
    assert ends(futures) == [0, 1, 2]


def test_closing_in_the_middle_of_a_batch_returns_the_unsent_messages(open_sender: OpenSender) -> None:
    gate = Gate()
    sender = open_sender(gate, queue_size=2, batch_size=1)
    futures = full(sender, gate)
    with pytest.raises(Undelivered) as raised:
        sender.close(0.0)
    assert ends(futures) == ["ProducerClosed"] * 3
    reasons = [str(failure.error) for failure in raised.value.failures]
    assert ["may be stored" in reason for reason in reasons] == [True, False, False]
    with pytest.raises(ProducerClosed):
        sender.send(message(3))
    sender.close(0.0)


def test_a_flush_that_takes_too_long_is_an_error(open_sender: OpenSender) -> None:
    gate = Gate()
    sender = open_sender(gate)
    future = sender.send(message(0))
    with pytest.raises(Undelivered, match="still in flight"):
        sender.flush(0.0)
    gate.opened.set()
    sender.close(WAIT_S)
    assert ends([future]) == [0]


class RecordingCallbacks(CallbackHandler):
    """Records its calls, and fails in each of them except the first."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def before_enqueue(self, message: Message) -> Message:
        """Return another message."""
        self.calls.append("before enqueue")
        return Message(topic=message.topic, value=b"7")

    def after_enqueue(self, message: Message, *, added: bool) -> None:
        """Record the call, and fail."""
        self._record(f"after enqueue {message.value!r} {added}")

    def after_dequeue(self, message: Message) -> None:
        """Record the call, and fail."""
        self._record(f"after dequeue {message.value!r}")

    def before_send(self, messages: Sequence[Message]) -> None:
        """Record the call, and fail."""
        self._record(f"before send {len(messages)}")

    def on_close(self, unsent: Sequence[Message]) -> None:
        """Record the call, and fail."""
        self._record(f"on close {len(unsent)}")

    def _record(self, call: str) -> None:
        self.calls.append(call)
        raise RuntimeError(call)


def test_callbacks_are_called_at_each_stage_and_their_errors_change_nothing(open_sender: OpenSender) -> None:
    gate, callbacks = Gate(), RecordingCallbacks()
    gate.opened.set()
    sender = open_sender(gate, callbacks=callbacks)
    future = sender.send(message(1))
    sender.close(WAIT_S)
    assert ends([future]) == [7]
    assert sorted(callbacks.calls) == sorted(
        [
            "before enqueue",
            "after enqueue b'7' True",
            "after dequeue b'7'",
            "before send 1",
            "on close 0",
        ]
    )


class Failing:
    """Raises an error, or returns too few outcomes."""

    def __init__(self, error: Exception | None) -> None:
        self._error = error

    def handle(self, messages: Sequence[Message], dispatch: Dispatch) -> Sequence[Outcome]:  # noqa: ARG002 - it uses neither
        """Return no outcome."""
        if self._error:
            raise self._error
        return []


@pytest.mark.parametrize(("error", "end"), [(ValueError("no"), "ValueError"), (None, "TypeError")])
def test_messages_without_an_outcome_from_the_handler_fail(
    open_sender: OpenSender, error: Exception | None, end: str
) -> None:
    sender = open_sender(Gate(), handler=Failing(error))
    futures = [sender.send(message(1)), sender.send(message(2))]
    assert ends(futures) == [end, end]
    with pytest.raises(Undelivered):
        sender.close(WAIT_S)


def test_a_queued_message_cannot_be_cancelled(open_sender: OpenSender) -> None:
    gate = Gate()
    sender = open_sender(gate)
    future = sender.send(message(1))
    assert not future.cancel()
    gate.opened.set()
    sender.close(WAIT_S)


def test_a_synchronous_sender_returns_the_result_or_raises_the_error() -> None:
    released: list[bool] = []
    gate = Gate(odd=ConnectionLost("gone"))
    gate.opened.set()
    sender = SyncSender(gate.send, lambda: released.append(True))
    assert sender.send(message(2)).offset == 2
    with pytest.raises(ConnectionLost):
        sender.send(message(1))
    with pytest.raises(Undelivered) as raised:
        sender.send_many([message(1), message(2), message(3)])
    assert [failure.message.value for failure in raised.value.failures] == [b"1", b"3"]
    assert [result.offset for result in sender.send_many([message(4), message(6)])] == [4, 6]
    sender.flush(None)
    sender.close(None)
    sender.close(None)
    assert released == [True]
    with pytest.raises(ProducerClosed):
        sender.send(message(2))


@given(
    when_full=st.sampled_from(["block", "drop", "raise"]),
    queue_size=st.integers(1, 5),
    batch_size=st.integers(1, 5),
    count=st.integers(0, 30),
    odd=st.booleans(),
)
def test_every_message_is_delivered_failed_or_refused(
    when_full: str, queue_size: int, batch_size: int, count: int, odd: bool
) -> None:
    gate = Gate(odd=ConnectionLost("gone") if odd else None)
    gate.opened.set()
    queueing = Queueing(queue_time_ms=0, batch_size=batch_size, queue_size=queue_size, when_full=when_full)  # type: ignore[arg-type]  # one of the allowed values
    sender = AsyncSender(gate.send, queueing, release=gate.released.set, interrupt=gate.opened.set)
    futures: dict[int, Future[Delivered]] = {}
    refused: set[int] = set()
    reported: list[bytes] = []
    for number in range(count):
        while number not in futures and number not in refused:
            try:
                futures[number] = sender.send(message(number))
            except QueueFull:
                refused.add(number)
            except Undelivered as error:
                reported += [failure.message.value for failure in error.failures]
    try:
        sender.close(WAIT_S)
    except Undelivered as error:
        reported += [failure.message.value for failure in error.failures]
    failed = {number for number, future in futures.items() if future.exception(WAIT_S)}
    assert sorted(reported) == sorted(b"%d" % number for number in failed)
    assert futures.keys() | refused == set(range(count))
    assert not refused or when_full == "raise"
    assert sum(gate.batches) == len(futures) - sum(
        isinstance(futures[number].exception(), QueueFull) for number in failed
    )
