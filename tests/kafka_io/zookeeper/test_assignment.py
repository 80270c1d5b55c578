"""The assignment has the properties of [kafka-0.7: Rebalancing] for any partitions and threads."""

import random

from hypothesis import given
from hypothesis import strategies as st

from kafka_io.model import BrokerPartition
from kafka_io.zookeeper.members import assign, java_order

BROKERS_07 = st.dictionaries(st.integers(0, 30), st.integers(0, 12), max_size=8).map(
    lambda counts: [BrokerPartition(broker, number) for broker, count in counts.items() for number in range(count)]
)
LATER = st.integers(0, 60).map(lambda count: [BrokerPartition(None, number) for number in range(count)])
PARTITIONS = BROKERS_07 | LATER
THREADS = st.lists(st.text(min_size=1, max_size=8), min_size=1, max_size=20, unique=True)


@given(partitions=PARTITIONS, threads=THREADS)
def test_each_partition_has_exactly_one_owner(partitions: list[BrokerPartition], threads: list[str]) -> None:
    shares = assign(partitions, threads)
    assert shares.keys() == set(threads)
    assert sorted(partition for share in shares.values() for partition in share) == sorted(partitions)


@given(partitions=PARTITIONS, threads=THREADS)
def test_sizes_differ_by_one_at_most_and_the_earlier_have_more(
    partitions: list[BrokerPartition], threads: list[str]
) -> None:
    shares = assign(partitions, threads)
    sizes = [len(shares[thread]) for thread in sorted(threads, key=java_order)]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] - sizes[-1] <= 1


@given(partitions=PARTITIONS, threads=THREADS)
def test_shares_are_contiguous_in_the_order_of_the_genuine_consumers(
    partitions: list[BrokerPartition], threads: list[str]
) -> None:
    shares = assign(partitions, threads)
    in_order = [partition for thread in sorted(threads, key=java_order) for partition in shares[thread]]
    numbers = [partition.partition for partition in in_order] if partitions and partitions[0].broker is None else []
    assert numbers == sorted(numbers)
    if not numbers:
        assert [str(partition) for partition in in_order] == sorted(str(partition) for partition in partitions)


@given(partitions=PARTITIONS, threads=THREADS, seed=st.integers(0, 1000))
def test_every_member_computes_the_same_assignment(
    partitions: list[BrokerPartition], threads: list[str], seed: int
) -> None:
    expected = assign(partitions, threads)
    shuffler = random.Random(seed)
    shuffler.shuffle(partitions)
    shuffler.shuffle(threads)
    assert assign(partitions, threads) == expected


def test_without_threads_nothing_is_assigned() -> None:
    assert assign([BrokerPartition(0, 0)], []) == {}


def test_ten_comes_before_two_in_07_and_after_it_later() -> None:
    old = assign([BrokerPartition(2, 0), BrokerPartition(10, 0)], ["a", "b"])
    assert old == {"a": (BrokerPartition(10, 0),), "b": (BrokerPartition(2, 0),)}
    new = assign([BrokerPartition(None, 10), BrokerPartition(None, 2)], ["a", "b"])
    assert new == {"a": (BrokerPartition(None, 2),), "b": (BrokerPartition(None, 10),)}


def test_the_example_of_the_document_is_reproduced() -> None:
    """Three consumers, two brokers with three partitions each."""
    partitions = [BrokerPartition(broker, number) for broker in (0, 1) for number in range(3)]
    shares = assign(partitions, ["A", "B", "C"])
    assert {thread: [str(partition) for partition in share] for thread, share in shares.items()} == {
        "A": ["0-0", "0-1"],
        "B": ["0-2", "1-0"],
        "C": ["1-1", "1-2"],
    }


def test_the_sample_code_of_the_document_assigns_partitions_twice_or_never() -> None:
    """A published sample program counts the extra partitions of earlier consumers only in the next one.

    See [kafka-0.7: Rebalancing].
    """
    partitions, consumers = [BrokerPartition(0, number) for number in range(5)], ["A", "B", "C", "D"]

    def sample(my_index: int) -> list[BrokerPartition]:
        per_consumer = len(partitions) // len(consumers)
        with_extra = range(len(partitions) % len(consumers))
        count = per_consumer + (1 if my_index in with_extra else 0)
        start = my_index * per_consumer + (my_index if my_index - 1 in with_extra else 0)
        return partitions[start : start + count]

    sampled = [partition.partition for index in range(len(consumers)) for partition in sample(index)]
    assert sampled == [0, 1, 2, 2, 3]  # 2 twice, 4 never
    ours = assign(partitions, consumers)
    assert [partition.partition for consumer in consumers for partition in ours[consumer]] == [0, 1, 2, 3, 4]
