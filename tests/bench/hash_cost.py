"""Measures what a hashed column costs a load: `python -m tests.bench.hash_cost` prints ratios of CPU time.

The same topic is loaded without rules, with a hash of a field whose values repeat, and with one of a field whose values
are all different. The rounds take turns in another order, and only ratios within a round are bounded. The broker is an
embedded one in a process of its own, so its time does not count.
"""

import statistics
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

from kafka_io.producer.opening import open_producer
from kafka_io.producer.publishing import publish_values
from kafka_io.records import decoder
from pipelines.fetch.fetch_runner import fetch_here
from resources.settings.settings import Settings
from tests.bench.data import EVENT_COLUMNS, event
from tests.bench.judging import missed_ratios
from tests.bench.many_topics import embedded_broker
from tests.bench.peers import ours

RECORDS, ROUNDS, TOPIC = 300_000, 7, "events"
PLAIN, REPEATED, DISTINCT = "no rule", "hash, 7 values that repeat", "hash, all values different"
FIELDS: Mapping[str, Sequence[str]] = {PLAIN: (), REPEATED: ("country",), DISTINCT: ("session",)}
"""The fields with a hash in each variant."""
BOUNDS = ((REPEATED, PLAIN, 1.15), (DISTINCT, PLAIN, 1.8))
_BATCH = 10_000


def measure(folder: Path, *, records: int = RECORDS, rounds: int = ROUNDS) -> list[dict[str, float]]:
    """The CPU seconds of each variant, in each round after a first one."""
    rng, secret = Random(7), folder / "secret"
    secret.write_text("k" * 32)
    costs = []
    with embedded_broker(folder / "broker") as bootstrap:
        with open_producer(bootstrap=bootstrap) as producer:
            for first in range(0, records, _BATCH):
                values = [event(number) for number in range(first, min(first + _BATCH, records))]
                publish_values((producer,), TOPIC, values)
        decoder.warm()
        for number in range(rounds + 1):
            round_ = {}
            for place, name in enumerate(rng.sample(list(FIELDS), len(FIELDS))):
                settings = _settings(folder / f"{number}-{place}", bootstrap, secret, FIELDS[name])
                began = time.process_time()
                ours.load(TOPIC, settings, ours.no_session, fetch=fetch_here)
                round_[name] = time.process_time() - began
            costs.append(round_)
    return costs[1:]


def _settings(lake: Path, bootstrap: str, secret: Path, hashed: Sequence[str]) -> Settings:
    topic: dict[str, Any] = {"format": "json", "columns": EVENT_COLUMNS}
    if hashed:
        topic["load"] = {"hash": dict.fromkeys(hashed, "people")}
    return Settings.model_validate(
        {
            "lake": str(lake),
            "clusters": {ours.CLUSTER: {"bootstrap": bootstrap}},
            "secrets": {"people": {"id": "k1", "key": f"file:{secret}"}},
            "topics": {TOPIC: topic},
            "caps": {"driver_slices": 1},
        }
    )


def report(rounds: Sequence[Mapping[str, float]]) -> str:
    """Markdown: one row for each variant."""
    lines = ["| what is stored of a field | CPU of a load without rules |", "|---|---:|"]
    for name in FIELDS:
        ratios = [round_[name] / round_[PLAIN] for round_ in rounds]
        lines.append(f"| {name} | {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f}) |")
    return "\n".join(lines)


def main() -> None:
    """Measure and print. Exit code 1: a bound does not hold."""
    with tempfile.TemporaryDirectory(prefix="penstock-hash-") as home:
        rounds = measure(Path(home))
    sys.stdout.write(f"{report(rounds)}\n")
    missed = list(missed_ratios(rounds, BOUNDS))
    for bound in missed:
        sys.stdout.write(f"bound: {bound}\n")
    sys.exit(bool(missed))


if __name__ == "__main__":
    main()
