"""What is put in comes out once and in order, and nothing waits for longer than it must."""

import threading
from concurrent.futures import ThreadPoolExecutor

from hypothesis import given
from hypothesis import strategies as st

from kafka_io.producer.senders import BoundedQueue

FOREVER_S = 60.0


@given(st.lists(st.integers(1, 7)), st.integers(1, 20))
def test_what_is_put_in_comes_out_once_and_in_order(sizes: list[int], size: int) -> None:
    queue: BoundedQueue[int] = BoundedQueue(size)
    added = [number for number in range(sum(sizes)) if queue.put(number, timeout_s=0)]
    assert added == list(range(min(sum(sizes), size)))
    queue.close()
    taken = [queue.take(most, FOREVER_S) for most in sizes]
    assert [item for batch in taken for item in batch] == added
    assert all(len(batch) <= most for batch, most in zip(taken, sizes, strict=True))
    assert queue.take(1, FOREVER_S) == []


def test_a_full_batch_does_not_linger() -> None:
    queue: BoundedQueue[int] = BoundedQueue(10)
    with ThreadPoolExecutor(1) as taking:
        batch = taking.submit(queue.take, 2, FOREVER_S)
        queue.put(1, timeout_s=0)
        queue.put(2, timeout_s=0)
        assert batch.result(FOREVER_S) == [1, 2]


def test_a_batch_goes_when_its_time_is_up() -> None:
    queue: BoundedQueue[int] = BoundedQueue(10)
    queue.put(1, timeout_s=0)
    assert queue.take(2, 0.01) == [1]


def test_who_joins_hurries_what_lingers_and_waits_until_it_is_done() -> None:
    queue: BoundedQueue[int] = BoundedQueue(10)
    queue.put(1, timeout_s=0)
    with ThreadPoolExecutor(2) as pool:
        batch = pool.submit(queue.take, 2, FOREVER_S)
        joined = pool.submit(queue.join, FOREVER_S)
        assert batch.result(FOREVER_S) == [1]
        assert not joined.done()
        queue.done()
        assert joined.result(FOREVER_S)


def test_what_is_not_done_is_told() -> None:
    queue: BoundedQueue[int] = BoundedQueue(10)
    queue.put(1, timeout_s=0)
    assert not queue.join(0.0)
    assert queue.drain() == ([], [1])
    assert queue.join(0.0)


def test_room_that_comes_is_taken_and_the_end_is_noticed() -> None:
    queue: BoundedQueue[int] = BoundedQueue(1)
    assert queue.put(1, timeout_s=None)
    with ThreadPoolExecutor(1) as putting:
        second = putting.submit(queue.put, 2, timeout_s=None)
        assert queue.take(1, 0) == [1]
        assert second.result(FOREVER_S)
        third = putting.submit(queue.put, 3, timeout_s=None)
        queue.close()
        assert third.result(FOREVER_S) is False
    assert queue.closed
    assert queue.drain() == ([1], [2])


def test_many_threads_lose_nothing_between_them() -> None:
    queue: BoundedQueue[int] = BoundedQueue(3)
    found: list[int] = []

    def take() -> None:
        while batch := queue.take(2, 0.0):
            found.extend(batch)
            queue.done()

    taker = threading.Thread(target=take)
    taker.start()
    with ThreadPoolExecutor(4) as putting:
        assert all(putting.map(lambda number: queue.put(number, timeout_s=None), range(400)))
    assert queue.join(FOREVER_S)
    queue.close()
    taker.join()
    assert sorted(found) == list(range(400))
