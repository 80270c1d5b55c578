"""For which failures of topics an alert was sent, so that a topic that keeps failing does not alert at each run.

The sensor remembers it in Dagster's storage. The lake's last error would be no proof of an alert: the first attempt of
a run writes it too, and the run may be retried (fault E20).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import dagster as dg
import msgspec

from kafka_io.typed_json import convert
from pipelines.defs.sensors.sensor_cursors import cursor_from


class TopicFailure(msgspec.Struct, frozen=True):
    """Why a topic fails.

    Args:
        since_ms: when its first load failed after the last one that did not, in ms since 1970; 0 if nobody knows it.
        kinds: the kinds of its errors.
    """

    since_ms: int
    kinds: frozenset[str]


Failures = Mapping[str, TopicFailure]
"""Failures by topic, as `cluster/topic`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertedFailures:
    """The failures of topics for which an alert was sent."""

    topics: Failures = field(default_factory=dict)

    @classmethod
    def stored(cls, instance: dg.DagsterInstance, sensor: str) -> "AlertedFailures":
        """Those that a sensor has stored."""
        return cursor_from(instance.daemon_cursor_storage.get_cursor_values({_name(sensor)}).get(_name(sensor)), cls)

    def store(self, instance: dg.DagsterInstance, sensor: str) -> None:
        """Store them for the next run that fails."""
        instance.daemon_cursor_storage.set_cursor_values({_name(sensor): msgspec.json.encode(self).decode()})

    def contain(self, failures: Failures) -> bool:
        """Whether there was an alert of each failure: since the topic began to fail, and of the same kinds."""
        return all(self._contains(topic, failure) for topic, failure in failures.items())

    def _contains(self, topic: str, failure: TopicFailure) -> bool:
        known = self.topics.get(topic)
        return known is not None and 0 < known.since_ms == failure.since_ms and failure.kinds <= known.kinds

    def including(self, failures: Failures) -> "AlertedFailures":
        """These failures and further ones. Older ones of the same topic are forgotten, unless they belong to them."""
        topics = dict(self.topics)
        for topic, failure in failures.items():
            known = topics.get(topic, failure)
            same = known.since_ms == failure.since_ms
            topics[topic] = TopicFailure(failure.since_ms, failure.kinds | (known.kinds if same else frozenset()))
        return replace(self, topics=topics)


def failures_in(metadata: Sequence[Mapping[str, Any]], name: str) -> Failures | None:
    """The failures in the metadata of steps that failed; None if a step does not say which topics fail."""
    failures: dict[str, TopicFailure] = {}
    for of_step in metadata:
        if name not in of_step:
            return None
        failures |= convert(of_step[name].value, dict[str, TopicFailure])
    return failures if metadata else None


def _name(sensor: str) -> str:
    return f"penstock/{sensor}/alerted"
