"""One table under test. Drivers work on it and end at given failpoints, and after each driver the table is checked."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kafka_io.errors import SchemaRegistryUnavailable
from kafka_io.model import BrokerPartition
from pipelines.formats.tables import lake_table
from pipelines.ledger.ledger import CommitKind
from pipelines.table.lake_table import LakeTable
from pipelines.table.table_store import TableSnapshot
from pipelines.verify.verify import verify
from resources.explanations.explanation import ExitCode
from resources.stores.lake import Lake
from resources.table_formats import TableFormats
from tests.crash.avro_values import check_avro_table
from tests.crash.child import DriverOptions
from tests.crash.drivers import Driver, Ended
from tests.crash.worlds import MESSAGES, TOPIC, Numbers, World, numbers

_MOST_LOADS = 40
_GROWING = {CommitKind.LOAD, CommitKind.REPLAY}
LOAD = ("load", TOPIC, "--json")
REGISTRY_DOWN = SchemaRegistryUnavailable.__name__
"""The kind of the error in the output of a load that the registry does not answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """One command of `penstock`, with the arguments of World.settings and the options of its driver.

    `prepare` is called before the command.
    """

    arguments: tuple[str, ...] = LOAD
    settings: Mapping[str, Any] = field(default_factory=dict)
    options: DriverOptions = field(default_factory=DriverOptions)
    prepare: Callable[["Trial"], None] = lambda _trial: None


@dataclass(slots=True, kw_only=True)
class Trial:
    """A lake in the folder `home`, loaded from a world. `published` are all messages of the topic by partition.

    The checks also compare the table with earlier checks: no file disappears, and no cursor moves back.
    """

    world: World
    home: Path
    published: Numbers = field(default_factory=dict)
    _files: set[str] = field(default_factory=set)
    _judged: tuple[int, set[str], Numbers] | None = None
    _drivers: int = 0

    @property
    def table(self) -> LakeTable:
        """The topic's table."""
        formats = TableFormats(of_lake=self.world.table_format)
        return lake_table(Lake(root=str(self.home / "lake"), formats=formats), "main", TOPIC)

    def new_driver_files(self, **settings: Any) -> tuple[Path, Path]:
        """Create the folder and the settings file of one more driver."""
        self._drivers += 1
        home = self.home / f"driver-{self._drivers}"
        home.mkdir(parents=True)
        file = self.home / f"{home.name}.toml"
        file.write_text(self.world.settings(**settings))
        return home, file

    def start(self, act: Act, *, kill_at: str = "") -> Driver:
        """Start a driver of `act` that ends or stops at `kill_at`."""
        home, file = self.new_driver_files(**act.settings)
        return Driver.start(home, ["--settings", str(file), *act.arguments], act.options, kill_at=kill_at)

    def run(self, act: Act, *, kill_at: str = "") -> Ended:
        """Run `act` until its driver ends, and check the table."""
        ended = self.start(act, kill_at=kill_at).wait()
        self.check()
        return ended

    def finish(self, act: Act) -> None:
        """Run `act` without failpoints until a run has nothing left to do; each run must end without an error.

        A run may only fail because the registry does not answer for a while.
        """
        for _ in range(_MOST_LOADS):
            ended = self.run(act)
            if ended.code == ExitCode.TRY_AGAIN and REGISTRY_DOWN in ended.output:
                continue
            assert ended.code == 0, ended.output
            if not _changed_anything(ended):
                return
        raise AssertionError(f"after {_MOST_LOADS} runs there is still something to do")

    def check(self) -> None:
        """Check that `verify` finds no problem, that no file is gone, and that each partition has consecutive messages.

        The rows of a table with Avro values must have the values of their messages, or the reason why they lack them.
        A table whose version and files have not changed since the last check is not checked again.
        """
        snapshot = self.table.existing()
        files = self.files()
        assert files >= self._files, f"files were deleted: {sorted(self._files - files)}"
        self._files = files
        if snapshot is None or (self._judged and self._judged[:2] == (snapshot.version, files)):
            return
        proof = verify(self.table)
        assert proof.proven, proof.problems
        _check_cursors(self.table, snapshot)
        _check_values(self.table, snapshot)
        numbers_of = self.loaded_numbers()
        for id_, loaded in numbers_of.items():
            assert _is_part_of(loaded, self.published[id_]), f"partition {id_} has {loaded} of {self.published[id_]}"
        self._judged = snapshot.version, files, numbers_of

    def check_complete(self) -> None:
        """Check the table, and that it has every published message once and in order."""
        self.check()
        assert self._judged is not None, "there is no table"
        assert self._judged[2] == self.published

    def loaded_numbers(self) -> Numbers:
        """The numbers of the messages that a reader of the table sees, by partition."""
        snapshot = self.table.existing()
        return numbers(snapshot.opened.dataset().to_table()) if snapshot else {}

    def files(self) -> set[str]:
        """All data files in the folder of the table, committed or not."""
        return {str(file) for file in Path(self.table.uri).glob("*=*/*.parquet")}


def _changed_anything(ended: Ended) -> bool:
    """Whether a load added rows or left a lag, or a replay changed something."""
    for result in json.loads(ended.output)["results"]:
        changed = result["changed"] if "changed" in result else result.get("rows", 0)
        if changed or any(partition.get("lag", 0) for partition in result.get("partitions", ())):
            return True
    return False


def _check_cursors(table: LakeTable, snapshot: TableSnapshot) -> None:
    """Check that only a cut or a rewind moves a cursor back (fault L06)."""
    before: Mapping[BrokerPartition, tuple[int, int]] = {}
    for version, entry in reversed(list(table.entries(snapshot))):
        for id_, (_, cursor) in before.items():
            moved_back = entry.covered.get(id_, (0, -1))[1] < cursor
            assert not moved_back or entry.kind not in _GROWING, f"version {version} moved the cursor of {id_} back"
        before = entry.covered


def _check_values(table: LakeTable, snapshot: TableSnapshot) -> None:
    """Check the columns and the cells of a table with Avro values."""
    entries = reversed(list(table.entries(snapshot)))
    added = [column["name"] for _, entry in entries for column in entry.columns]
    if "price" in (*added, *snapshot.layout.values.names):
        check_avro_table(snapshot.opened.dataset().to_table(), added, len(MESSAGES))


def _is_part_of(loaded: Sequence[int], published: Sequence[int]) -> bool:
    """Whether `loaded` is a part of `published` without holes, in the same order."""
    if not loaded:
        return True
    if loaded[0] not in published:
        return False
    first = published.index(loaded[0])
    return list(published[first : first + len(loaded)]) == list(loaded)


def undisturbed(world: World, home: Path) -> Numbers:
    """Load the topic without failpoints; returns all messages by partition, and checks that they are in order."""
    trial = Trial(world=world, home=home)
    ended = trial.start(Act()).wait()
    assert ended.code == 0, ended.output
    loaded = trial.loaded_numbers()
    assert sorted(number for numbers_ in loaded.values() for number in numbers_) == list(range(len(MESSAGES)))
    assert all(list(numbers_) == sorted(numbers_) for numbers_ in loaded.values())
    return loaded
