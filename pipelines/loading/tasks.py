"""Slices grouped into tasks of about equal work: small ones share a task, a large one has its own."""

from collections.abc import Sequence
from heapq import heapify, heapreplace

from pipelines.loading.slices import FULL, Sizes, Slice

_LEAST_TASKS = 4  # a task costs about 50 ms: more than one core can be busy with a small load


def into_tasks(slices: Sequence[Slice], sizes: Sizes) -> list[list[Slice]]:
    """The tasks, each in order of partition and offset; what one full slice may hold is one task's work.

    Work is balanced by what part of a full slice a slice is, and so by bytes where these make slices full, else by
    records: of short records each one costs, not their bytes.
    """
    loads = sorted(((sizes.load(one), one) for one in slices), key=lambda pair: (-pair[0], pair[1].place))
    total = sum(load for load, _ in loads)
    count = 1 if total <= FULL else min(len(slices), max(_LEAST_TASKS, -(-total // FULL)))
    heap: list[tuple[int, int]] = [(0, task) for task in range(count)]
    heapify(heap)
    tasks: list[list[Slice]] = [[] for _ in range(count)]
    for load, one in loads:
        taken, task = heap[0]
        tasks[task].append(one)
        heapreplace(heap, (taken + load, task))
    return [sorted(task, key=lambda one: one.place) for task in tasks if task]
