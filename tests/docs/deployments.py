"""Reads the files of docs/deploy: the commands that they start, and their settings."""

import json
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click
import yaml

from pipelines.cli.main import main
from tests.docs.pages import ROOT

DEPLOY = ROOT / "docs" / "deploy"
KUBERNETES = sorted((DEPLOY / "kubernetes").glob("*.yaml"))
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
TIMERS = sorted((DEPLOY / "systemd").glob("*.timer"))
_OUR_PROGRAMS = "/opt/penstock/bin/"
COMPOSE = DEPLOY / "compose" / "compose.yaml"


def programs() -> dict[str, Any]:
    """The commands of our programs, by the name of the program."""
    # All processes of `make test` import this module to collect its tests, and Dagster's webserver takes a second.
    from dagster._cli import create_dagster_cli  # noqa: PLC0415
    from dagster._daemon.cli import create_dagster_daemon_cli  # noqa: PLC0415
    from dagster_webserver.cli import create_dagster_webserver_cli  # noqa: PLC0415

    return {
        "penstock": main,
        "dagster": create_dagster_cli(),  # type: ignore[no-untyped-call] # Dagster gives them no types
        "dagster-daemon": create_dagster_daemon_cli(),
        "dagster-webserver": create_dagster_webserver_cli(),  # type: ignore[no-untyped-call] # same
    }


def check_command(words: list[str]) -> None:
    """Check that a program has the subcommands and options of a command line."""
    program, *rest = words
    command = programs()[program]
    # A command keeps the names of its option for help, which the settings of the program decide.
    context = click.Context(command, info_name=program, **command.context_settings)
    while isinstance(command, click.Group) and rest and rest[0] in command.commands:
        command = command.commands[rest.pop(0)]
        context = click.Context(command, context, **command.context_settings)
    assert not isinstance(command, click.Group) or rest == ["--help"], words
    command.parse_args(click.Context(command, context, resilient_parsing=True), list(rest))
    _, unknown, _ = command.make_parser(context).parse_args(list(rest))
    assert unknown == [], words


def unit(file: Path) -> list[tuple[str, str]]:
    """The settings of a unit of systemd, in their order."""
    lines = file.read_text().splitlines()
    return [(name, value) for name, is_setting, value in (line.partition("=") for line in lines) if is_setting]


def unit_command(file: Path) -> list[str]:
    """The command that a unit starts, without the folder of the program."""
    [command] = unit_commands(file, "ExecStart")
    return command


def unit_commands(file: Path, *settings: str) -> list[list[str]]:
    """The commands in these settings of a unit, without the folder of the program and the prefixes of systemd."""
    lines = [value.lstrip("-") for name, value in unit(file) if name in settings]
    return [[Path(program).name, *rest] for program, *rest in map(shlex.split, lines)]


def manifests() -> list[dict[str, Any]]:
    """All objects of the manifests for Kubernetes."""
    return [document for file in KUBERNETES for document in yaml.safe_load_all(file.read_text())]


def of_kind(kind: str) -> list[dict[str, Any]]:
    """The objects of a kind."""
    return [manifest for manifest in manifests() if manifest["kind"] == kind]


def pods() -> list[dict[str, Any]]:
    """The templates of all pods that the manifests describe."""
    jobs = [job["spec"]["jobTemplate"] for job in of_kind("CronJob")]
    return [workload["spec"]["template"] for workload in (*of_kind("Deployment"), *jobs)]


def compose() -> dict[str, Any]:
    """The content of compose.yaml."""
    content: dict[str, Any] = yaml.safe_load(COMPOSE.read_text())
    return content


def commands() -> Iterator[list[str]]:
    """Each command that a file of docs/deploy starts with one of our programs."""
    started = [command for file in UNITS for command in unit_commands(file, "ExecStartPre", "ExecStart")]
    yield from (command for command in started if command[0] != "python")
    for pod in pods():
        [container] = pod["spec"]["containers"]
        yield container["args"]
        for probe in ("startupProbe", "livenessProbe"):
            if command := container.get(probe, {}).get("exec"):
                yield command["command"]
    for service in compose()["services"].values():
        if service["image"].startswith("penstock:"):
            yield from ([service["command"]] if "command" in service else [])
            test = service.get("healthcheck", {}).get("test", ["CMD", "python"])[1:]
            yield from ([test] if test[0] != "python" else [])
    for name, text in dockerfile():
        if name == "RUN" and text.startswith(_OUR_PROGRAMS):
            yield text.removeprefix(_OUR_PROGRAMS).split()
        if name in {"CMD", "HEALTHCHECK"}:
            words = json.loads(text.partition("CMD")[2] if name == "HEALTHCHECK" else text)
            yield ["penstock", *words] if words == ["--help"] else words


def dockerfile() -> list[tuple[str, str]]:
    """The instructions of the Dockerfile, each with its text on one line."""
    lines = [line for line in (DEPLOY / "Dockerfile").read_text().splitlines() if line and not line.startswith("#")]
    text = "\n".join(lines).replace("\\\n", " ")
    return [(name, " ".join(rest.split())) for name, _, rest in (line.partition(" ") for line in text.splitlines())]


def stages() -> dict[str, list[tuple[str, str]]]:
    """The instructions of each stage of the Dockerfile, by its name. The first one of a stage is its FROM."""
    by_stage: dict[str, list[tuple[str, str]]] = {}
    for instruction in dockerfile():
        if instruction[0] == "FROM":
            by_stage[instruction[1].rpartition(" AS ")[2]] = []
        if by_stage:
            by_stage[list(by_stage)[-1]].append(instruction)
    return by_stage


def mounted_files() -> Iterator[Path]:
    """The files of this repository that compose.yaml mounts."""
    for service in compose()["services"].values():
        for volume in service.get("volumes", ()):
            source = volume.partition(":")[0]
            if source.startswith("."):
                yield COMPOSE.parent / source


def secrets_of(container: Mapping[str, Any]) -> list[str]:
    """The names of the secrets whose values a container gets as variables."""
    return [source["secretRef"]["name"] for source in container["envFrom"]]
