"""How long brokers keep the records of a topic, from its settings; names and values are Kafka's own."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

FOREVER = -1
"""Kafka's value for "no limit", used instead of milliseconds or bytes."""

_POLICY, _MS, _BYTES = "cleanup.policy", "retention.ms", "retention.bytes"
SETTINGS = (_POLICY, _MS, _BYTES)
"""The settings of a topic that decide its retention."""

TopicSettings = Mapping[str, str | None]
"""Those of a topic's SETTINGS that are known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """The retention settings that the brokers report; -1 for no limit.

    They say how long and how much of each partition's log is kept. -1 is FOREVER, and None stands for what is unknown.
    A segment is deleted as soon as its newest record is older than `ms`; before 0.10.1, as soon as the last write to it
    is older.
    """

    ms: int | None = None
    bytes: int | None = None

    @classmethod
    def of(cls, settings: TopicSettings) -> Self:
        """The retention according to the settings; a topic that is only compacted never expires."""
        policies = cleanup_policies(settings)
        if policies is not None and "delete" not in policies:
            return cls(ms=FOREVER, bytes=FOREVER)
        return cls(ms=_limit(settings.get(_MS)), bytes=_limit(settings.get(_BYTES)))


def cleanup_policies(settings: TopicSettings) -> frozenset[str] | None:
    """The values of the topic's cleanup.policy: "delete", "compact" or both; None if it is unknown."""
    policy = settings.get(_POLICY)
    return None if policy is None else frozenset(map(str.strip, policy.split(",")))


def _limit(text: str | None) -> int | None:
    """The limit in a text: any negative number means no limit, and a text that is not a number is unknown."""
    try:
        return None if text is None else max(int(text), FOREVER)
    except ValueError:
        return None
