"""The event times of the records of a world: most are within the allowed lateness, some are late, some are absurd.

They have random numbers of their own, so a world with event times has the same events as the one without.
"""

import random
from collections.abc import Iterable
from dataclasses import dataclass, field

from resources.settings.topic_formats import TopicFormat

_HOUR_MS = 3_600_000
_LATENESS_MS = (0, 0, 500, 36 * _HOUR_MS)
_FIRST_MS, _YEAR_9999_MS = 1, 253_402_000_000_000


@dataclass(slots=True)
class SimTimes:
    """The event times of all records, and when each was appended, in ms since 1970, by payload."""

    seed: int
    lateness_ms: int = field(init=False)
    event_ms: dict[int, int] = field(default_factory=dict)
    appended_ms: dict[int, int] = field(default_factory=dict)
    _rng: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self._rng = random.Random(f"event times {self.seed}")
        self.lateness_ms = self._rng.choice(_LATENESS_MS)

    def send(self, payloads: Iterable[int], now_ms: int) -> None:
        """Choose the event times of new records."""
        for payload in payloads:
            self.appended_ms[payload] = now_ms
            self.event_ms[payload] = self._event_ms(now_ms)

    def _event_ms(self, now_ms: int) -> int:
        kind = self._rng.random()
        if kind < 0.02:
            return _FIRST_MS
        if kind < 0.04:
            return _YEAR_9999_MS
        if kind < 0.1:
            return now_ms - self.lateness_ms - self._rng.randint(1, 48 * _HOUR_MS)
        return now_ms - (0 if kind < 0.5 else self._rng.randint(0, self.lateness_ms))

    def is_late(self, payload: int) -> bool:
        """Whether the record arrived later than the allowed lateness."""
        return self.event_ms[payload] < self.appended_ms[payload] - self.lateness_ms

    def format(self, of_values: TopicFormat) -> TopicFormat:
        """The format of the topic with its event time."""
        times = {"event_time": "timestamp", "allowed_lateness_minutes": self.lateness_ms / 60_000}
        return of_values.model_copy(update=times)
