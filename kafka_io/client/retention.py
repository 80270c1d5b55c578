"""How long brokers keep the records of a topic, as its settings say. Names and words are Kafka's own."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

FOREVER = -1
"""In place of milliseconds or bytes, as Kafka writes it: there is no such limit."""

_POLICY, _MS, _BYTES = "cleanup.policy", "retention.ms", "retention.bytes"
SETTINGS = (_POLICY, _MS, _BYTES)
"""The settings of a topic that it is read from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """How long and how much of each partition's log is kept: FOREVER for no limit, None for what is not known.

    By time a segment goes as soon as its newest record is older than `ms`: in its last-written time before 0.10.1.
    """

    ms: int | None = None
    bytes: int | None = None

    @classmethod
    def of(cls, settings: Mapping[str, str | None]) -> Self:
        """From a topic's settings, or those that are known of it. A topic that is only compacted does not expire."""
        policy = settings.get(_POLICY)
        if policy is not None and "delete" not in _words(policy):
            return cls(ms=FOREVER, bytes=FOREVER)
        return cls(ms=_limit(settings.get(_MS)), bytes=_limit(settings.get(_BYTES)))


def _words(policy: str) -> list[str]:
    return [word.strip() for word in policy.split(",")]


def _limit(text: str | None) -> int | None:
    """Brokers take any number below 0 for no limit; what is no number is not known."""
    try:
        return None if text is None else max(int(text), FOREVER)
    except ValueError:
        return None
