"""The worlds, opened when they are first asked for, and what is found out about each once."""

from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Self

from tests.crash.harness import Trial, undisturbed
from tests.crash.stories import Story, passed
from tests.crash.worlds import Numbers, World, modern_world, old_world

WORLDS: dict[str, Callable[[str, Path], AbstractContextManager[World]]] = {
    "0.7": old_world,
    "modern": lambda _zookeeper, folder: modern_world(folder),
}


class Stage:
    """Worlds in a folder; those of 0.7 are registered in the ZooKeeper at `host:port`."""

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
        """A new lake of that world."""
        if world not in self._worlds:
            folder = self._folder / world
            opened = self._running.enter_context(WORLDS[world](self._zookeeper, folder))
            self._worlds[world] = opened, undisturbed(opened, folder / "undisturbed")
        opened, whole = self._worlds[world]
        return Trial(world=opened, home=home, whole=whole)

    def shows(self, world: str, story: Story) -> bool:
        """Whether the story can happen there."""
        selves = self.trial(world, self._folder / world).world.selves
        return all(act.settings.get("myself", "now") in {"now", *selves} for act in story.acts)

    def passed(self, world: str, story: Story) -> list[Counter[str]]:
        """How often each act of the story passes each step there."""
        key = world, story.name
        if key not in self._passed:
            folder = self._folder / world / f"steps of {story.name}"
            self._passed[key] = passed(self.trial(world, folder / "trial"), story, folder / "steps")
        return self._passed[key]
