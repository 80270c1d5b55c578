"""A commit lands on the version that it was planned on, also if the log was put back to a copy meanwhile."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from unittest.mock import patch

import pytest

from pipelines.commit import commit as commit_module
from pipelines.commit.commit import commit
from pipelines.delta import delta_table as table_module
from pipelines.maintenance.rewind import plan_rewind, rewind
from pipelines.verify.verify import verify
from resources.errors import CommitRefused, TableNotProven
from resources.stores.store_client import store_client
from tests.pipelines.commit.test_replacement import cutting

if TYPE_CHECKING:
    from tests.small_table import SmallTable


@pytest.fixture
def twice(small: "SmallTable") -> "SmallTable":
    """A table after two loads, with a copy of its log after the first one."""
    small.commit(small.write(0, 50))
    shutil.copytree(log_of(small), copy_of(small))
    small.commit(small.write(50, 80))
    return small


def log_of(small: "SmallTable") -> Path:
    return Path(small.uri) / "_delta_log"


def copy_of(small: "SmallTable") -> Path:
    return Path(small.uri).parent / "copy"


def put_back(small: "SmallTable") -> None:
    """Put the log back to the copy. Then another run commits other rows under the same version."""
    shutil.rmtree(log_of(small))
    shutil.copytree(copy_of(small), log_of(small))
    small.commit(small.write(50, 80), run="other")


@contextmanager
def at(module: object, name: str, act: Callable[[], None]) -> Iterator[None]:
    """Do `act` once, when a commit passes the failpoint."""
    waiting = [act]

    def passed(failpoint: str) -> None:
        if failpoint == name and waiting:
            waiting.pop()()

    with patch.object(module, "failpoint", passed):
        yield


def test_a_load_does_not_land_on_another_commit_of_the_same_version(twice: "SmallTable") -> None:  # fault E05
    facts = twice.write(80, 90)
    with (
        at(commit_module, "files checked", lambda: put_back(twice)),
        pytest.raises(CommitRefused, match="version 2 is another commit now, or is not there; run again"),
    ):
        twice.commit(facts)
    assert (twice.rows(), verify(twice.table).problems) == (8, ())
    twice.commit(facts)
    assert (twice.rows(), verify(twice.table).problems) == (9, ())


def test_a_cut_does_not_land_on_another_commit_of_the_same_version(twice: "SmallTable") -> None:  # fault E05
    snapshot, change = twice.table.snapshot(), cutting(twice, 60, 80)
    put_back(twice)
    with pytest.raises(CommitRefused, match="was put back while this run used it"):
        commit(twice.table, snapshot, change)
    assert (twice.rows(), verify(twice.table).problems) == (8, ())


def test_a_log_that_was_put_back_to_an_older_version_takes_no_commit(twice: "SmallTable") -> None:  # fault E05
    snapshot, facts = twice.table.snapshot(), twice.write(80, 90)
    shutil.rmtree(log_of(twice))
    shutil.copytree(copy_of(twice), log_of(twice))
    with pytest.raises(CommitRefused, match="version 2 is another commit now, or is not there"):
        twice.commit(facts, snapshot=snapshot)
    assert twice.table.snapshot().version == 1


def test_a_commit_that_landed_on_another_one_is_reported_and_named_by_verify(twice: "SmallTable") -> None:  # fault E05
    facts, client = twice.write(80, 90), store_client

    def late(*_: object) -> object:
        with patch.object(table_module, "store_client", client):
            put_back(twice)
        return client(twice.uri, {})

    with (
        patch.object(table_module, "store_client", late),
        pytest.raises(TableNotProven, match="`penstock rewind clicks --version 2` takes it back"),
    ):
        twice.commit(facts)
    [problem] = verify(twice.table).problems
    assert problem.startswith("version 3 was planned on another version 2 than the one in the log, which was put back")
    rewind(plan_rewind(twice.table, 2, run="repair"))
    assert (twice.rows(), verify(twice.table).problems) == (8, ())
