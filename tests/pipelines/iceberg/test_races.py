"""Loads of a topic that race for an Iceberg table have each row once, whatever answers of the catalog are lost."""

import random
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from threading import Thread

import pytest

from kafka_io.model import BrokerPartition
from pipelines.commit.commit import commit
from pipelines.verify.verify import verify
from resources.errors import CommitRefused, CommitUnknown, LakeRefused, LakeUnavailable
from resources.stores.table_catalog import EMBEDDED, TableCatalog
from tests.catalogs.rest_catalog import SECRET, rest_catalog
from tests.pipelines.iceberg.lossy_catalog import LossyCatalog
from tests.small_table import SmallIcebergTable

A = BrokerPartition(0, 0)


def race(root: Path, catalog: TableCatalog, *, commits: int, loses: bool) -> SmallIcebergTable:
    """Load a topic with four loads that race, each with its own connection; returns the table."""
    small = SmallIcebergTable(root, catalog)

    def load(number: int) -> None:
        rng = random.Random(number)
        how = ["", "", "before", "after"] if loses else [""]
        own = SmallIcebergTable(root, catalog)
        lossy = LossyCatalog(own.catalog, lambda: rng.choice(how))
        own.table = replace(own.table, catalog=lossy)  # type: ignore[arg-type]
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
    check(race(tmp_path / "lake", EMBEDDED, commits=15, loses=loses), 15)


@pytest.mark.postgres
def test_four_racing_loads_have_each_row_once_in_a_catalog_in_postgres(tmp_path: Path, postgres_dsn: str) -> None:
    address = postgres_dsn.replace("postgresql://", "postgresql+psycopg://")
    check(race(tmp_path / "lake", TableCatalog(type="sql", uri=address), commits=15, loses=True), 15)


@pytest.mark.slow
@pytest.mark.parametrize("login", [{"token": SECRET}, {"credential": f"loader:{SECRET}"}], ids=["token", "credential"])
def test_four_racing_loads_have_each_row_once_in_a_rest_catalog(tmp_path: Path, login: Mapping[str, str]) -> None:
    with rest_catalog(tmp_path / "catalog") as uri:
        catalog = TableCatalog(type="rest", uri=uri, properties=login)
        check(race(tmp_path / "lake", catalog, commits=6, loses=True), 6)


@pytest.mark.slow
def test_a_rest_catalog_that_refuses_the_login_or_is_away_is_an_error_of_the_lake(tmp_path: Path) -> None:
    with rest_catalog(tmp_path / "catalog") as uri:
        wrong = TableCatalog(type="rest", uri=uri, properties={"token": "wrong"})
        with pytest.raises(LakeRefused, match="the catalog of the Iceberg tables refuses the request: NotAuthorized"):
            SmallIcebergTable(tmp_path / "lake", wrong)
        small = SmallIcebergTable(tmp_path / "lake", replace(wrong, properties={"token": SECRET}))
    with pytest.raises(LakeUnavailable, match="the catalog of the Iceberg tables does not answer"):
        small.commit(small.write(0, 50))
