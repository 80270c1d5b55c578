"""Compares what an answer names with what its request named: topics, partitions, groups (fault P10)."""

from collections.abc import Hashable, Iterable
from typing import Any

from kafka_io.errors import Corrupt, printable

Names = Iterable[tuple[Hashable, ...]]
"""The subjects of a request or an answer, for example pairs of a topic's name or id and a partition."""


def partitions_in(
    topics: Iterable[Any], *, topic: str = "name", partitions: str = "partitions", partition: str = "partition_index"
) -> Names:
    """The partitions in a request or an answer, each with its topic; the arguments are the names of the fields."""
    return ((getattr(item, topic), getattr(part, partition)) for item in topics for part in getattr(item, partitions))


def check_echo(requested: Names | None, answered: Names) -> None:
    """Check that an answer names only what was requested, and nothing twice. None stands for a request of everything.

    Raises:
        Corrupt: the answer is about something else.
    """
    wanted = None if requested is None else set(requested)
    seen: set[tuple[Hashable, ...]] = set()
    for names in answered:
        if wanted is not None and names not in wanted:
            raise Corrupt(f"the broker answered for {_text(names)}, which was not requested")
        if names in seen:
            raise Corrupt(f"the broker answered twice for {_text(names)}")
        seen.add(names)


def check_complete_echo(requested: Names, answered: Names) -> None:
    """The same for requests whose answers must name all that was requested: a missing result is no success."""
    wanted, named = list(requested), list(answered)
    check_echo(wanted, named)
    known = set(named)
    missing = next((names for names in wanted if names not in known), None)
    if missing is not None:
        raise Corrupt(f"the broker did not answer for {_text(missing)}")


def _text(names: tuple[Hashable, ...]) -> str:
    return " ".join(printable(name) for name in names)
