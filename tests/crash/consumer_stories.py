"""Kills consumers at failpoints while their table has a random history, and compares with a full recomputation."""

import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from operator import methodcaller
from pathlib import Path
from random import Random

from pipelines.maintenance.clean import clean
from tests.crash.chance import Failed
from tests.crash.consumers import Consumer
from tests.pipelines.increments.table_histories import EVENTS

_KILLED = -9
_KILLS_PER_STORY = 5
_MOST_ROUNDS = 4
"""How often a story tries to kill a consumer, for each kill that it must have."""
_RACE_SHARE = 0.25
_REPEATED = {"increment batch read", "increment batch written"}
"""The failpoints that a process passes several times."""


def _overtake(consumer: Consumer) -> None:
    """Let another process of the consumer commit first, with a version that the stopped process does not know."""
    consumer.history.happen("load")
    consumer.complete()


def _nothing(_consumer: Consumer) -> None:
    pass


def _clean_replaced_files(consumer: Consumer) -> None:
    consumer.history.happen("replay")
    clean(consumer.history.table, keep=timedelta(0), target_bytes=1, dry_run=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Circumstance:
    """What must happen so that a consumer passes a failpoint.

    Args:
        events: what happens to the table at the end.
        before: is called before the consumer starts.
        stop_at: the failpoint at which the consumer stops first, if any.
        meanwhile: is called while it is stopped.
    """

    events: Sequence[str] = ("load",)
    before: Callable[[Consumer], None] = _nothing
    stop_at: str = ""
    meanwhile: Callable[[Consumer], None] = _nothing


_REPLACED = Circumstance(events=("load", "replay", "load"))
_OVERTAKEN = {"duckdb": "increment known", "postgres": "before output transaction"}


def circumstance(kind: str, failpoint: str) -> Circumstance:
    """What must happen so that a consumer of this kind passes the failpoint."""
    overtaken = Circumstance(stop_at=_OVERTAKEN.get(kind, "before increment entry"), meanwhile=_overtake)
    return {
        "output created": Circumstance(before=methodcaller("remove")),
        "source read again": Circumstance(stop_at="source read", meanwhile=_overtake),
        "attempt failed": overtaken,
        "increment write failed": overtaken,
        "output columns added": Circumstance(before=methodcaller("add_column")),
        "rows removed": _REPLACED,
        "staged rows committed": _REPLACED,
        "state rebuild begun": Circumstance(events=(), before=_clean_replaced_files),
    }.get(failpoint, Circumstance())


@dataclass(slots=True, kw_only=True)
class ConsumerStory:
    """A table with a random history, and a consumer that is killed at a failpoint again and again.

    Attributes:
        outcomes: how often the consumer was killed, ended before the failpoint, raced at its end, or overtook itself.
    """

    consumer: Consumer
    failpoint: str
    circumstance: Circumstance
    random: Random
    outcomes: Counter[str] = field(default_factory=Counter)

    def play(self, kills: int) -> None:
        """Kill the consumer so often.

        Raises:
            AssertionError: an effect of a row is missing or there twice, or the consumer does not pass the failpoint.
        """
        self._happen("load")
        self._complete()
        for _ in range(kills * _MOST_ROUNDS):
            if self.outcomes["killed"] == kills:
                break
            self._happen(*self.random.choices(EVENTS, k=self.random.randrange(3)), *self.circumstance.events)
            self.circumstance.before(self.consumer)
            self._disturb()
            self._happen(*self.random.choices(EVENTS, k=self.random.randrange(3)))
            self._complete()
        assert self.outcomes["killed"] == kills, f"killed {self.outcomes['killed']} times at {self.failpoint}"

    def _happen(self, *events: str) -> None:
        for event in events:
            self.consumer.history.happen(event)

    def _disturb(self) -> None:
        """Kill the consumer once. Afterwards its output has all effects of the increment, or none."""
        before, rival = self.consumer.rows(), None
        stop_at = self.circumstance.stop_at
        nth = self.random.randint(1, 2) if self.failpoint in _REPEATED else 1
        driver = self.consumer.start(f"stop:{stop_at},{self.failpoint}" if stop_at else f"{self.failpoint}:{nth}")
        if stop_at and driver.stopped():
            self.circumstance.meanwhile(self.consumer)
            before = self.consumer.rows()
            driver.resume()
        elif self.random.random() < _RACE_SHARE:
            rival = self.consumer.start()
        ended = driver.wait()
        assert ended.code in {0, _KILLED}, ended.errors
        if rival is not None:
            assert (with_rival := rival.wait()).code == 0, with_rival.errors
            self.outcomes["raced"] += 1
        self.outcomes["killed" if ended.code else "ended"] += 1
        complete = [self.consumer.expected()]
        allowed = complete if rival or not ended.code else [before, *complete]
        assert self.consumer.rows() in allowed, f"{self.consumer.history.events} and a kill at {self.failpoint}"

    def _complete(self) -> None:
        """Bring everything into the output, sometimes with two processes at once; then it equals a recomputation."""
        if self.random.random() < _RACE_SHARE:
            for process in [self.consumer.start() for _ in range(2)]:
                assert (ended := process.wait()).code == 0, ended.errors
            self.outcomes["raced"] += 1
        else:
            self.consumer.complete()
        assert self.consumer.rows() == self.consumer.expected(), self.consumer.history.events


Opener = Callable[[str, Path, Random], Consumer]
"""Opens a consumer of a kind, with files in a folder, and with a random history."""


def kill_consumers(kind: str, failpoint: str, kills: int, seed: int, folder: Path, open_: Opener) -> Counter[str]:
    """Kill consumers of a kind at a failpoint, in stories of a few kills each; returns the outcomes.

    Raises:
        Failed: a check failed. The files are kept.
    """
    outcomes: Counter[str] = Counter()
    for first in range(0, kills, _KILLS_PER_STORY):
        random = Random(f"{seed} {kind} {failpoint} {first}")
        home = folder / f"{kind}-{failpoint.replace(' ', '-')}-{seed}-{first}"
        shutil.rmtree(home, ignore_errors=True)
        consumer = open_(kind, home, random)
        story = ConsumerStory(
            consumer=consumer, failpoint=failpoint, circumstance=circumstance(kind, failpoint), random=random
        )
        try:
            story.play(min(_KILLS_PER_STORY, kills - first))
        except Exception as error:
            raise Failed(
                f'make crash KILLS={kills} SEED={seed} AT="{kind}: {failpoint}": {type(error).__name__}: {error}; '
                f"its files are in {home}"
            ) from error
        shutil.rmtree(home)
        outcomes += story.outcomes
    return outcomes
