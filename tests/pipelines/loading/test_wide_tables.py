"""The work of planning grows with the number of columns, not with its square. It is counted as calls of functions."""

import sys
from collections.abc import Callable
from types import FrameType

import pyarrow as pa
import pytest

from kafka_io.values.columns import described
from kafka_io.values.json.inference import grow_by_fields

FEW, TIMES = 100, 8


def calls(work: Callable[[], object]) -> int:
    """The number of calls of functions, also of those in C, while the work is done."""
    count = 0

    def on_event(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal count
        count += event in {"call", "c_call"}

    before = sys.getprofile()
    sys.setprofile(on_event)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


def grow_by_a_known_sample(columns: int) -> Callable[[], object]:
    """Workers compare each batch with new keys, or with values that do not decode, with all columns."""
    fields = [described(f"field{number}", pa.int64()) for number in range(columns)]
    return lambda: grow_by_fields(pa.schema(fields), fields)


@pytest.mark.parametrize("work", [grow_by_a_known_sample])
def test_work_is_proportional_to_the_number_of_columns(work: Callable[[int], Callable[[], object]]) -> None:
    calls(work(FEW))  # the first time also fills caches
    assert calls(work(TIMES * FEW)) < 1.5 * TIMES * calls(work(FEW))
