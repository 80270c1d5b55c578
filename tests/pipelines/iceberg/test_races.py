"""Loads of a topic that race for an Iceberg table have each row once, whatever answers of the catalog are lost."""

import random
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from threading import Thread

import pytest

from kafka_io.model import BrokerPartition
from pipelines.commit.commit import commit
from pipelines.verify.verify import verify
from resources.errors import CommitRefused, CommitUnknown, LakeUnavailable
from tests.pipelines.iceberg.lossy_catalog import LossyCatalog
from tests.small_table import SmallIcebergTable

A = BrokerPartition(0, 0)


def race(root: Path, catalog_uri: str, *, commits: int, loses: bool) -> SmallIcebergTable:
    """Load a topic with four loads that race, each with its own connection; returns the table."""
    small = SmallIcebergTable(root, catalog_uri)

    def load(number: int) -> None:
        rng = random.Random(number)
        how = ["", "", "before", "after"] if loses else [""]
        own = SmallIcebergTable(root, catalog_uri)
        catalog = LossyCatalog(own.catalog, lambda: rng.choice(how))
        own.table = replace(own.table, catalog=catalog)  # type: ignore[arg-type]
        own._loaded_at = 1_000_000 * number
        while True:
            snapshot = own.table.snapshot()
            cursor = snapshot.entry.covered[A][1] if snapshot.entry else 0
            if cursor >= 50 * commits:
                return
            change = own.loading(own.write(cursor, cursor + 50), snapshot=snapshot)
            with suppress(CommitRefused, CommitUnknown, LakeUnavailable):  # the next round reads the table again
                commit(own.table, snapshot, change, sleep=lambda _: None)

    threads = [Thread(target=load, args=(number,)) for number in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return small


def check(small: SmallIcebergTable, commits: int) -> None:
    """Check that each row and each commit is in the table once."""
    assert small.rows() == 5 * commits
    assert verify(small.table).problems == ()
    entries = [entry.commit for _, entry in small.table.entries(small.table.snapshot())]
    assert len(entries) == len(set(entries)) == commits


@pytest.mark.slow
@pytest.mark.parametrize("loses", [False, True], ids=["calm", "lost answers"])
def test_four_racing_loads_have_each_row_once(tmp_path: Path, *, loses: bool) -> None:
    check(race(tmp_path / "lake", "", commits=15, loses=loses), 15)


@pytest.mark.postgres
def test_four_racing_loads_have_each_row_once_in_a_catalog_in_postgres(tmp_path: Path, postgres_dsn: str) -> None:
    address = postgres_dsn.replace("postgresql://", "postgresql+psycopg://")
    check(race(tmp_path / "lake", address, commits=15, loses=True), 15)
