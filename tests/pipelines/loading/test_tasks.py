"""Tasks: every slice once, balanced, and one alone for what one slice could hold."""

from hypothesis import given
from hypothesis import strategies as st

from kafka_io.model import BrokerPartition
from pipelines.loading.slices import Sizes, Slice
from pipelines.loading.tasks import into_tasks


def partition(number: int) -> BrokerPartition:
    return BrokerPartition(None, number)


def test_what_is_no_more_than_one_full_slice_is_one_task() -> None:
    slices = [Slice(id=partition(number), start=0, stop=25) for number in range(4)]
    assert into_tasks(slices, Sizes(slice=100)) == [slices]
    assert len(into_tasks(slices, Sizes(slice=99))) == 4
    assert into_tasks([], Sizes(slice=100)) == []


def test_a_hot_partition_has_tasks_of_its_own_and_small_ones_share() -> None:  # S10
    hot = [Slice(id=partition(0), start=at, stop=at + 100) for at in range(0, 1000, 100)]
    small = [Slice(id=partition(number), start=0, stop=1) for number in range(1, 1000)]
    tasks = into_tasks([*hot, *small], Sizes(slice=100))
    assert len(tasks) == 20
    assert all(sum(one in hot for one in task) <= 1 for task in tasks)
    assert max(len(task) for task in tasks) <= 101


def test_few_large_records_are_as_much_work_as_many_small_ones() -> None:
    large = [Slice(id=partition(0), start=at, stop=at + 10) for at in range(0, 80, 10)]
    small = [Slice(id=partition(1), start=at, stop=at + 1000) for at in range(0, 8000, 1000)]
    tasks = into_tasks([*large, *small], Sizes(slice=1000, slices={partition(0): 10}))
    assert [len(task) for task in tasks] == [1] * 16


@given(
    st.lists(st.tuples(st.integers(1, 1000), st.integers(1, 2000)), max_size=40),
    st.integers(1, 2000),
)
def test_tasks_hold_every_slice_once_and_none_has_twice_its_share(  # S10
    parts: list[tuple[int, int]], target: int
) -> None:
    slices = [Slice(id=partition(number), start=0, stop=size) for number, (size, _) in enumerate(parts)]
    sizes = Sizes(slice=target, slices={partition(number): own for number, (_, own) in enumerate(parts) if own % 2})
    tasks = into_tasks(slices, sizes)
    assert sorted((one for task in tasks for one in task), key=lambda one: one.place) == slices
    loads = [sum(map(sizes.load, task)) for task in tasks]
    largest = max(map(sizes.load, slices), default=0)
    for load in loads:
        assert load <= 2 * max(largest, sum(loads) / len(loads))
