"""How long records are kept, from a topic's settings. No limit is not the same as unknown."""

import pytest

from kafka_io.cluster.retention import FOREVER, Retention

WEEK_MS = 604_800_000


@pytest.mark.parametrize(
    ("settings", "ms", "size"),
    [
        ({}, None, None),
        ({"retention.ms": "604800000", "retention.bytes": "-1"}, WEEK_MS, FOREVER),
        ({"retention.ms": "-1"}, FOREVER, None),
        ({"retention.ms": "-7", "retention.bytes": "1000"}, FOREVER, 1000),
        ({"retention.ms": "0"}, 0, None),
        ({"retention.ms": None}, None, None),
        ({"retention.ms": "a week"}, None, None),
        ({"cleanup.policy": "delete", "retention.ms": "604800000"}, WEEK_MS, None),
        ({"cleanup.policy": "compact, delete", "retention.ms": "604800000"}, WEEK_MS, None),
        ({"cleanup.policy": "compact", "retention.ms": "604800000", "retention.bytes": "1"}, FOREVER, FOREVER),
        ({"cleanup.policy": "", "retention.ms": "604800000"}, FOREVER, FOREVER),
    ],
)
def test_the_retention_follows_from_the_settings(
    settings: dict[str, str | None], ms: int | None, size: int | None
) -> None:
    assert Retention.of(settings) == Retention(ms=ms, bytes=size)
