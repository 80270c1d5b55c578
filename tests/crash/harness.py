"""One table under test: drivers work on it, end at given failpoints, and the table is checked after each."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kafka_io.model import BrokerPartition
from pipelines.loading.ledger import CommitKind
from pipelines.loading.table import LakeTable
from pipelines.loading.table_log import TableSnapshot
from pipelines.loading.verify import verify
from resources.lake import Lake
from tests.crash.child import Terms
from tests.crash.drivers import Driver, Ended
from tests.crash.worlds import MESSAGES, TOPIC, Numbers, World, numbers

_MOST_LOADS = 40
_GROWING = {CommitKind.LOAD, CommitKind.REPLAY}
LOAD = ("load", TOPIC, "--json")


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """One command of `penstock`, the settings it is run with (see World.settings), and its terms.

    `prepare` is done before it, in the table's folder.
    """

    arguments: tuple[str, ...] = LOAD
    settings: Mapping[str, Any] = field(default_factory=dict)
    terms: Terms = field(default_factory=Terms)
    prepare: Callable[[Path], None] = lambda _folder: None


@dataclass(slots=True, kw_only=True)
class Trial:
    """A lake in a folder, filled from a world. `whole` is the content of the topic, from a load that nothing disturbed.

    Every check counts what was seen before: no file goes, and no cursor falls.
    """

    world: World
    home: Path
    whole: Numbers = field(default_factory=dict)
    _files: set[str] = field(default_factory=set)
    _judged: tuple[int, set[str]] | None = None
    _drivers: int = 0

    @property
    def table(self) -> LakeTable:
        """The topic's table."""
        return LakeTable.of(Lake(root=str(self.home / "lake")), "main", TOPIC)

    def place(self, **settings: Any) -> tuple[Path, Path]:
        """For one more driver: a folder of its own, and its settings file."""
        self._drivers += 1
        home = self.home / f"driver-{self._drivers}"
        home.mkdir(parents=True)
        file = self.home / f"{home.name}.toml"
        file.write_text(self.world.settings(**settings))
        return home, file

    def start(self, act: Act, *, at: str = "") -> Driver:
        """A driver that does `act`, and ends where `at` says."""
        home, file = self.place(**act.settings)
        return Driver.start(home, ["--settings", str(file), *act.arguments], act.terms, at=at)

    def run(self, act: Act, *, at: str = "") -> Ended:
        """The same to its end; whatever became of it, the table is right."""
        ended = self.start(act, at=at).wait()
        self.check()
        return ended

    def finish(self, act: Act) -> None:
        """Run `act` undisturbed: at once it must end well, and be run again until it finds nothing to do."""
        for _ in range(_MOST_LOADS):
            ended = self.run(act)
            assert ended.code == 0, ended.output
            if not _took(ended):
                return
        raise AssertionError(f"{_MOST_LOADS} runs, and still not done")

    def check(self) -> None:
        """The table is proven; what it holds of each partition is as it was published, without a hole; nothing went.

        A table of the same version and with the same files is not judged again.
        """
        snapshot = self.table.existing()
        files = self.files()
        assert files >= self._files, f"files were deleted: {sorted(self._files - files)}"
        self._files = files
        if snapshot is None or self._judged == (snapshot.version, files):
            return
        proof = verify(self.table)
        assert proof.proven, proof.problems
        _check_cursors(self.table, snapshot)
        for id_, found_numbers in self.held().items():
            assert _is_stretch(found_numbers, self.whole[id_]), (
                f"partition {id_} holds {found_numbers} of {self.whole[id_]}"
            )
        self._judged = snapshot.version, files

    def check_whole(self, expected: Numbers | None = None) -> None:
        """Check that every message is in the table once, in its place."""
        assert self.held() == (self.whole if expected is None else expected)

    def held(self) -> Numbers:
        """The messages that readers of the table see."""
        snapshot = self.table.existing()
        return numbers(snapshot.handle.to_pyarrow_table()) if snapshot else {}

    def files(self) -> set[str]:
        """The data files that are there, committed or not."""
        return {str(file) for file in Path(self.table.uri).glob("date=*/*.parquet")}


def _took(ended: Ended) -> bool:
    """Whether a load added or left anything, or a replay changed anything."""
    for result in json.loads(ended.output):
        changed = result["changed"] if "changed" in result else result.get("rows", 0)
        if changed or any(partition.get("lag", 0) for partition in result.get("partitions", ())):
            return True
    return False


def _check_cursors(table: LakeTable, at: TableSnapshot) -> None:
    """Only a cut or a rewind takes a cursor back (fault L06)."""
    before: Mapping[BrokerPartition, tuple[int, int]] = {}
    for version, entry in reversed(list(table.entries(at))):
        for id_, (_, cursor) in before.items():
            fell = entry.covered.get(id_, (0, -1))[1] < cursor
            assert not fell or entry.kind not in _GROWING, f"version {version} took partition {id_} back"
        before = entry.covered


def _is_stretch(held: Sequence[int], whole: Sequence[int]) -> bool:
    """Whether `held` is what `whole` has somewhere, one after the other."""
    if not held:
        return True
    if held[0] not in whole:
        return False
    first = whole.index(held[0])
    return list(whole[first : first + len(held)]) == list(held)


def undisturbed(world: World, home: Path) -> Numbers:
    """The messages of the topic by partition, from a load that nothing disturbs: all that was published, in order."""
    trial = Trial(world=world, home=home)
    ended = trial.start(Act()).wait()
    assert ended.code == 0, ended.output
    whole = trial.held()
    assert sorted(number for numbers_ in whole.values() for number in numbers_) == list(range(len(MESSAGES)))
    assert all(list(numbers_) == sorted(numbers_) for numbers_ in whole.values())
    return whole
