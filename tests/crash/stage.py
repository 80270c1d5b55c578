"""The worlds of all tests. A world is started when a test first needs it; its messages and steps are kept."""

import shutil
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Self

from tests.crash.harness import Trial, undisturbed
from tests.crash.stories import Story, count_failpoints
from tests.crash.worlds import Numbers, World, iceberg_world, modern_world, old_world

WORLDS: dict[str, Callable[[str, Path], AbstractContextManager[World]]] = {
    "0.7": old_world,
    "modern": lambda _zookeeper, folder: modern_world(folder),
}

ALL_WORLDS: dict[str, Callable[[str, Path], AbstractContextManager[World]]] = {
    **WORLDS,
    "iceberg": lambda _zookeeper, folder: iceberg_world(folder),
}
"""The worlds of random stories. Iceberg tables cannot be copied to another place, as the other tests do."""


class Stage:
    """Runs the worlds, with their data in `folder`. Brokers of 0.7 use the ZooKeeper at `zookeeper` (`host:port`)."""

    def __init__(self, zookeeper: str, folder: Path) -> None:
        self._zookeeper = zookeeper
        self._folder = folder
        self._running = ExitStack()
        self._worlds: dict[str, tuple[World, Numbers]] = {}
        self._passed: dict[tuple[str, str], list[Counter[str]]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._running.close()

    def trial(self, world: str, home: Path) -> Trial:
        """A new lake in `home` that loads from the world with this name."""
        if world not in self._worlds:
            folder = self._folder / world
            opened = self._running.enter_context(ALL_WORLDS[world](self._zookeeper, folder))
            self._worlds[world] = opened, undisturbed(opened, folder / "undisturbed")
        opened, published = self._worlds[world]
        return Trial(world=opened, home=home, published=published)

    def can_play(self, world: str, story: Story) -> bool:
        """Whether the world has all that the story needs."""
        opened = self.trial(world, self._folder / world).world
        variants = opened.variants
        has_format = opened.table_format in story.formats
        return has_format and all(
            act.settings.get("variant", "current") in {"current", *variants} for act in story.acts
        )

    def failpoint_counts(self, world: str, story: Story) -> list[Counter[str]]:
        """The number of times that each act of the story passes each failpoint in this world."""
        key = world, story.name
        if key not in self._passed:
            trial = self.trial(world, self._folder / world / f"trial of {story.name}")
            self._passed[key] = count_failpoints(trial, story, self._lakes(world, story))
        return self._passed[key]

    def trial_before(self, world: str, story: Story, act: int, home: Path) -> Trial:
        """A lake as undisturbed acts leave it before the act with this number. `failpoint_counts` has played them."""
        self.failpoint_counts(world, story)
        shutil.copytree(self._lakes(world, story) / str(act), home / "lake", dirs_exist_ok=True)
        return self.trial(world, home)

    def _lakes(self, world: str, story: Story) -> Path:
        return self._folder / world / f"lakes of {story.name}"
