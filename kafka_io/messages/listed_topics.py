"""Checks listed topics: their names become folders, their partitions keys of tables (faults H04, N08)."""

import re
from collections.abc import Iterable

from kafka_io.errors import Corrupt, Where, printable
from kafka_io.model import MAX_PARTITIONS

# The names that 0.8 and 0.9 accept. From 0.10.2 on the limit is 249 characters, but longer names stay valid.
_TOPIC_NAME = re.compile(r"[a-zA-Z0-9._-]{1,255}")


def is_topic_name(name: str) -> bool:
    """Whether Kafka from 0.8 on accepts the name for a topic."""
    return bool(_TOPIC_NAME.fullmatch(name)) and name not in {".", ".."}


def check_listed_topic(name: str | None, partitions: Iterable[int]) -> None:
    """Check a topic that a broker lists, and the numbers of its partitions.

    Raises:
        Corrupt: Kafka accepts no topic with this name, or no partition with such a number.
    """
    if name is None or not is_topic_name(name):
        raise Corrupt(f"the broker lists a topic with the name {printable(name or '')}, which Kafka does not accept")
    wrong = next((number for number in partitions if not 0 <= number < MAX_PARTITIONS), None)
    if wrong is not None:
        raise Corrupt(f"the broker lists a partition {wrong}, which no topic can have", Where(topic=name))
