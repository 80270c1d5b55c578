"""Tests of `penstock config check` about this machine and the lake: Java, Spark, Dagster's storage, disks, clocks."""

import os
import shutil
import tempfile
import time
import uuid
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from pipelines.cli.config_tests.cluster import MAX_AHEAD_S
from pipelines.cli.config_tests.result import CheckResult, ClockWrong, SpaceShort, StorageUnusable, checked, passed
from resources.errors import LakeRefused
from resources.extras import check_extra, has_extra, install_hint
from resources.quantities import duration, size
from resources.settings.settings import Settings, SettingsError
from resources.settings.settings_shown import shown

if TYPE_CHECKING:
    import dagster as dg

_MIN_FREE_SHARE = 0.05
_MIN_FREE_BYTES = 2 * 1024**3
_HOME_VARIABLE = "DAGSTER_HOME"


def check_machine(settings: Settings) -> Iterator[CheckResult]:
    """Test Java, Dagster's storage, and the disks of this machine that a load writes to."""
    yield checked("java", lambda: _java(settings))
    yield _check_storage()
    folders = {"temporary files": Path(tempfile.gettempdir())}
    if home := os.environ.get(_HOME_VARIABLE):
        folders[_HOME_VARIABLE] = Path(home)
    for name, folder in folders.items():
        yield checked(f"disk of {name}", lambda folder=folder: _free_space(folder))  # type: ignore[misc]


def check_lake(settings: Settings) -> Iterator[CheckResult]:
    """Test the lake: its rights, whether it refuses to create an object twice, its free space and its clock."""
    from resources.stores.durable import local_path

    yield checked("lake", lambda: _lake(settings))
    folder = local_path(settings.lake)
    if folder is not None:
        yield checked("disk of the lake", lambda: _free_space(folder))
    if folder is None or folder.exists():
        yield checked("clock of the lake", lambda: _store_clock(settings))


def describe_definitions(settings: Settings) -> str:
    """The definitions that Dagster makes from the settings.

    Raises:
        SettingsError: it cannot make them.
    """
    if not has_extra("dagster"):
        return f"not installed, so nothing loads on a schedule; {install_hint('dagster')}"
    import dagster as dg

    from pipelines.defs.build import definitions_of
    from pipelines.defs.catalog.catalog import Catalog
    from resources.penstock import PenstockResource

    with warnings.catch_warnings(action="ignore"):  # Dagster warns about its own beta features
        try:
            definitions = definitions_of(Catalog(source=PenstockResource(inline=settings), settings=settings))
            dg.Definitions.validate_loadable(definitions)
            repository = definitions.get_repository_def()
        except dg.DagsterInvalidDefinitionError as error:  # for example, Dagster rejects an owner
            raise SettingsError(str(error)) from error
    return f"schedules: {len(repository.schedule_defs)}, sensors: {len(repository.sensor_defs)}"


def describe_spark(settings: Settings) -> str:
    """The address of Spark, if it is installed.

    Raises:
        ExtraMissing: the settings need it, and it is not installed.
    """
    from resources.machines.spark import DEFAULT_MASTER

    spark = shown(settings)["spark"]
    if not has_extra("spark") and not spark:
        return f"not installed, so each load runs in one process; for Spark, {install_hint('spark')}"
    check_extra("spark", "the section [spark] of the settings")
    address = spark.get("remote") or spark.get("master", DEFAULT_MASTER)
    return f"{address}, other Spark settings: {len(spark.keys() - {'master', 'remote'})}"


def _java(settings: Settings) -> str:
    from resources.machines.java import find_java

    if not has_extra("spark"):
        return "not needed without Spark"
    if "remote" in settings.spark:
        return "not needed with Spark Connect"
    return str(find_java())


def _check_storage() -> CheckResult:
    subject = "dagster storage"
    if not has_extra("dagster"):
        return passed(subject, "not tested: Dagster is not installed")
    if not os.environ.get(_HOME_VARIABLE):
        return passed(subject, f"not tested: {_HOME_VARIABLE} is not set here")
    return checked(subject, _storage)


def _storage() -> str:
    """The kind of Dagster's storage, and whether it has the tables that this version needs.

    Raises:
        StorageUnusable: it does not answer, or needs a migration.
    """
    import dagster as dg

    home = os.environ[_HOME_VARIABLE]
    if not Path(home).is_dir():
        raise StorageUnusable(f"{_HOME_VARIABLE} is {home}, which is no folder")
    try:
        with dg.DagsterInstance.get() as instance:
            runs = instance.get_runs_count()
            _check_driver(instance)
            _check_migrated(instance)
            kind = type(instance.run_storage).__name__
            limit = instance.get_concurrency_config().pool_config.default_pool_limit
    except StorageUnusable:
        raise
    except Exception as error:
        raise StorageUnusable(f"Dagster cannot use the storage that {home}/dagster.yaml names") from error
    pools = "pools have no limit" if limit is None else f"limit of pools: {limit}"
    return f"{kind}, runs: {runs}, {pools}"


def _check_driver(instance: "dg.DagsterInstance") -> None:
    """Check that Postgres is reached through psycopg2: with psycopg, Dagster 1.13 cannot write events.

    SQLAlchemy from 2.1 on chooses psycopg if the URL names no driver.
    """
    engine = getattr(instance.event_log_storage, "_engine", None)
    if getattr(engine, "driver", None) == "psycopg":
        raise StorageUnusable(
            "Dagster cannot write events through the driver psycopg: begin the URL of Postgres with "
            "postgresql+psycopg2://"
        )


def _check_migrated(instance: "dg.DagsterInstance") -> None:
    for storage in (instance.run_storage, instance.event_log_storage, instance.schedule_storage):
        versions = storage.alembic_version() if storage else None
        if versions and versions[0] != versions[1]:
            raise StorageUnusable(
                f"the storage is at the revision {versions[0]}, and this version of Dagster needs {versions[1]}"
            )


def _free_space(folder: Path) -> str:
    """The free space of the disk of a folder, or of the first folder above it that exists.

    Raises:
        SpaceShort: too little is left.
    """
    existing = next(parent for parent in (folder, *folder.absolute().parents) if parent.exists())
    usage = shutil.disk_usage(existing)
    fact = f"{size(usage.free)} of {size(usage.total)} are free in {existing}"
    if usage.free < min(_MIN_FREE_BYTES, _MIN_FREE_SHARE * usage.total):
        raise SpaceShort(f"the disk is almost full: {fact}")
    return fact


def _lake(settings: Settings) -> str:
    from resources.stores.durable import local_path
    from resources.stores.lake import Lake
    from resources.stores.lake_marker import check_put_if_absent, read_marker

    lake = Lake.of(settings)
    tables = sum(len(lake.topics(cluster)) for cluster in settings.clusters)
    folder = local_path(settings.lake)
    if folder is not None:
        _check_writable(folder)
    if folder is None or folder.exists():  # a check does not create a folder that may be a missing mount
        check_put_if_absent(lake)
    former = sorted(set(lake.clusters()) - set(settings.clusters))
    facts = [shown(settings)["lake"], f"tables: {tables}"]
    facts += [f"clusters that the settings do not have: {' '.join(former)}"] if former else []
    facts += [] if tables or former or read_marker(lake) else ["a new lake: no load has used it"]
    return ", ".join(facts)


def _check_writable(folder: Path) -> None:
    """Check that this user can write to the folder, or can create it.

    Raises:
        LakeRefused: this user cannot.
    """
    existing = next(parent for parent in (folder, *folder.parents) if parent.exists())
    if not os.access(existing, os.W_OK | os.X_OK):
        raise LakeRefused(f"this user cannot write to {existing}")


def _store_clock(settings: Settings) -> str:
    """The difference between the clock of the lake's store and that of this machine, from the time of a new file.

    Raises:
        ClockWrong: it is too large. A store such as S3 refuses requests if it is above 15 minutes.
    """
    from resources.stores.lake import Lake, filesystem, lake_errors, write_file
    from resources.stores.lake_marker import MARKER

    lake, name = Lake.of(settings), f"{MARKER}-clock-{uuid.uuid4().hex}/probe"
    with lake_errors(lake.root):
        files = filesystem(lake.root, lake.options)
        before = time.time()
        write_file(files, name, b"clock")
        try:
            (info,) = files.get_file_info([name])
        finally:
            files.delete_dir(name.partition("/")[0])
    # The time of the store is between both if the clocks agree; stores round it to a second.
    ahead_s = info.mtime_ns / 1e9 - before
    if abs(ahead_s) > MAX_AHEAD_S:
        direction = "ahead of" if ahead_s > 0 else "behind"
        raise ClockWrong(f"the clock of the store is {duration(round(abs(ahead_s)))} {direction} that of this machine")
    return "agrees with that of this machine"
