"""Cutting what comes one by one into requests."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

T = TypeVar("T")


def batched(values: Iterable[T], size: int) -> Iterator[list[T]]:
    """Lists of `size` values each, in order; the last may be shorter."""
    rest = iter(values)
    while batch := list(islice(rest, size)):
        yield batch
