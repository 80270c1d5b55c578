"""`penstock init`: test the address of a cluster and a lake, and write a settings file for them."""

import os
import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from pipelines.cli.config_tests.new_settings import settings_text
from pipelines.cli.options import GlobalOptions, has_terminal
from pipelines.cli.output import console
from pipelines.cli.output.result import CommandResult, ends_of, prints_result
from resources.printed import printed
from resources.settings.settings import Settings
from resources.table_formats import TableFormat

if TYPE_CHECKING:
    from pipelines.cli.config_tests.result import CheckResult
    from pipelines.ledger.failure import SliceFailure

_REQUEST_TIMEOUT_S = 10.0
_DEFAULT_LAKE = "lake"


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatedSettings:
    """The result of `penstock init`. If a test failed, the file is not `written`."""

    settings: str
    written: bool
    topics: Sequence[str]
    commands: Sequence[str]
    """The commands that come next."""
    checks: "Sequence[CheckResult]"
    errors: "Sequence[SliceFailure]"


@click.command("init")
@click.option("--bootstrap", metavar="HOST:PORT", help="The brokers, separated by commas, for Kafka from 0.8 on.")
@click.option("--zookeeper", metavar="HOST:PORT", help="The ZooKeeper of the cluster, for Kafka 0.7 to 3.x.")
@click.option("--lake", metavar="PATH", help="A folder, or a URI such as s3://bucket/lake.")
@click.option(
    "--table-format", type=click.Choice(get_args(TableFormat)), help="The format of the tables. [default: delta]"
)
@click.option("--cluster", "name", metavar="NAME", default="main", help="Your name for the cluster.")
@click.option("--tls", is_flag=True, help="Encrypt connections. The authorities of the system are trusted.")
@click.option("--sasl", "mechanism", metavar="MECHANISM", help="Log in, for example with SCRAM-SHA-512.")
@click.option("--username", metavar="NAME", help="The user for --sasl.")
@click.option("--password", metavar="REF", help="Where the password for --sasl is: env:NAME or file:PATH.")
@prints_result
def init_command(
    options: GlobalOptions,
    /,
    bootstrap: str | None,
    zookeeper: str | None,
    lake: str | None,
    table_format: TableFormat | None,
    name: str,
    tls: bool,
    **login: str | None,
) -> CommandResult:
    """Write a settings file for a cluster and a lake, and test both.

    Without --bootstrap and --zookeeper the command asks for the address, without --lake for the lake, and without
    --table-format for the format of the tables. It tests them as `penstock config check` does, and lists the topics. If
    a test fails, it says how to repair the problem, and writes nothing. It never overwrites a file.

    \b
    Examples:
      penstock init
      penstock init --bootstrap localhost:9092 --lake lake
      penstock init --bootstrap localhost:9092 --lake lake --table-format iceberg
    """
    file = Settings.path(options.settings_file)
    _check_absent(file)
    if not bootstrap and not zookeeper:
        bootstrap, zookeeper = _ask_for_address()
    lake = lake or _ask("Lake (a folder, or a URI such as s3://bucket/lake)", "--lake", default=_DEFAULT_LAKE)
    table_format = table_format or _ask_for_format()
    sasl = {key: value for key, value in login.items() if value}
    security = {**({"tls": True} if tls else {}), **({"sasl": sasl} if sasl else {})}
    parts = {"bootstrap": bootstrap, "zookeeper": zookeeper, "security": security}
    cluster: dict[str, Any] = {key: value for key, value in parts.items() if value}
    answers = {"lake": lake, "table_format": table_format, "clusters": {name: cluster}}
    settings = Settings.of(answers, folder=file.parent, place="the answers")
    with _lake_folder(settings) as keep_folder:
        checks, topics = _test(settings, name)
        errors = [error for check in checks for error in check.errors]
        if not errors:
            _write(file, settings_text(lake, name, cluster, table_format))
            keep_folder()
    created = CreatedSettings(
        settings=str(file),
        written=not errors,
        topics=topics,
        commands=[] if errors else _next_commands(file, topics),
        checks=checks,
        errors=errors,
    )
    records = [printed(created)]
    return CommandResult(records=records, show=console.initialised, ends=ends_of(records))


def _check_absent(file: Path) -> None:
    """Check that no settings file would be overwritten."""
    if os.path.lexists(file):
        raise click.UsageError(f"the settings file {file} exists, and is not overwritten; name another with --settings")


def _write(file: Path, text: str) -> None:
    try:
        with file.open("x", encoding="utf-8") as new:
            new.write(text)
    except FileExistsError:  # another process has created it since `_check_absent`
        _check_absent(file)


def _ask_for_address() -> tuple[str | None, str | None]:
    """The brokers, or the address of ZooKeeper; the other one is None."""
    brokers = _ask("Brokers (host:port,...; empty for ZooKeeper)", "--bootstrap or --zookeeper", default="")
    return (brokers, None) if brokers else (None, _ask("ZooKeeper (host:port,...)", "--zookeeper"))


def _ask_for_format() -> TableFormat:
    """The format that the user chooses. Without a terminal, it is the default."""
    if not has_terminal():
        return "delta"
    formats = click.Choice(get_args(TableFormat))
    chosen: TableFormat = click.prompt("Format of the tables", default="delta", type=formats, err=True)
    return chosen


def _ask(question: str, option: str, *, default: str | None = None) -> str:
    """The answer of the user. Without a terminal, a missing option is wrong use."""
    if not has_terminal():
        raise click.UsageError(f"give {option}: there is no terminal to ask at")
    answer: str = click.prompt(question, default=default, show_default=bool(default), err=True)
    return answer.strip()


@contextmanager
def _lake_folder(settings: Settings) -> Iterator[Callable[[], None]]:
    """Create the folder of a lake on a disk, so that it can be tested. Yields a function that lets the folder stay."""
    from resources.stores.durable import local_path

    folder = local_path(settings.lake)
    created: list[Path] = []
    if folder is not None and not folder.exists():
        with suppress(OSError):  # the test of the lake says why
            folder.mkdir(parents=True)
            created.append(folder)
    try:
        yield created.clear
    finally:
        for path in created:
            with suppress(OSError):
                path.rmdir()


def _test(settings: Settings, name: str) -> "tuple[list[CheckResult], list[str]]":
    """The tests of the lake and of the cluster, and the names of its topics."""
    from pipelines.cli.config_tests.cluster import check_cluster
    from pipelines.cli.config_tests.machine import check_lake
    from resources.kafka import open_cluster

    impatient = settings.with_short_timeout(attempts=1, timeout_s=_REQUEST_TIMEOUT_S)
    checks = [*check_lake(settings), *check_cluster(impatient, name)]
    if any(not check.ok for check in checks):
        return checks, []
    with open_cluster(impatient, name) as cluster:
        return checks, sorted(topic.name for topic in cluster.topics().entries)


def _next_commands(file: Path, topics: Sequence[str]) -> list[str]:
    """The three commands that a new user runs next."""
    program = "penstock" if file == Settings.path() else shlex.join(["penstock", "--settings", str(file)])
    load = shlex.join(["load", topics[0]]) if topics else "load --all"
    return [f"{program} config check", f"{program} {load}", f"{program} status"]
