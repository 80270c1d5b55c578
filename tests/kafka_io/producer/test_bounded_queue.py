"""The queue of an asynchronous producer: items come out once and in order, and no wait is longer than necessary."""

import threading
from concurrent.futures import ThreadPoolExecutor

from hypothesis import given
from hypothesis import strategies as st

from kafka_io.producer.senders import BoundedQueue

FOREVER_S = 60.0


@given(st.lists(st.integers(1, 7)), st.integers(1, 20))
def test_items_come_out_once_and_in_order(sizes: list[int], size: int) -> None:
    queue: BoundedQueue[int] = BoundedQueue(size)
    added = [number for number in range(sum(sizes)) if queue.put(number, timeout_s=0)]
    assert added == list(range(min(sum(sizes), size)))
    queue.close()
    batches = [queue.take(max_items, FOREVER_S) for max_items in sizes]
    assert [item for batch in batches for item in batch] == added
    assert all(len(batch) <= max_items for batch, max_items in zip(batches, sizes, strict=True))
    assert queue.take(1, FOREVER_S) == []


def test_a_full_batch_does_not_linger() -> None:
    queue: BoundedQueue[int] = BoundedQueue(10)
    with ThreadPoolExecutor(1) as pool:
        batch = pool.submit(queue.take, 2, FOREVER_S)
        queue.put(1, timeout_s=0)
        queue.put(2, timeout_s=0)
        assert batch.result(FOREVER_S) == [1, 2]


def test_an_incomplete_batch_is_taken_after_the_linger_time() -> None:
    queue: BoundedQueue[int] = BoundedQueue(10)
    queue.put(1, timeout_s=0)
    assert queue.take(2, 0.01) == [1]


def test_join_ends_the_linger_time_and_waits_until_the_items_are_done() -> None:
    queue: BoundedQueue[int] = BoundedQueue(10)
    queue.put(1, timeout_s=0)
    with ThreadPoolExecutor(2) as pool:
        batch = pool.submit(queue.take, 2, FOREVER_S)
        joined = pool.submit(queue.join, FOREVER_S)
        assert batch.result(FOREVER_S) == [1]
        assert not joined.done()
        queue.close()
        assert queue.take(1, FOREVER_S) == []
        assert joined.result(FOREVER_S)


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
        assert second.result(FOREVER_S)
        third = pool.submit(queue.put, 3, timeout_s=None)
        queue.close()
        assert third.result(FOREVER_S) is False
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
    assert queue.join(FOREVER_S)
    queue.close()
    taker.join()
    assert sorted(items) == list(range(400))
