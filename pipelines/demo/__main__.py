"""`make demo`, `make demo UI=1` and `make ui`."""

import os
import signal
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import click
import dagster as dg

from pipelines.demo.forgotten import ForgottenStory
from pipelines.demo.hours import HoursStory
from pipelines.demo.servers import running, servers
from pipelines.demo.state import CLUSTER, DemoState, free_port
from pipelines.demo.story import run_story
from resources.machines.spark import close_session
from resources.settings.settings import PATH_VARIABLE, Settings

_WORKSPACE = """\
# The sensor reloads this code server itself, so a new topic becomes an asset within one tick.
load_from:
  - grpc_server: {{host: 127.0.0.1, port: {port}, location_name: penstock}}
"""
_DEFAULT_UI_PORT = 3000


@click.command()
@click.option(
    "--home", type=click.Path(path_type=Path), default=".demo", show_default=True, help="The folder of the demo."
)
@click.option("--ui", is_flag=True, help="Keep the servers, the Dagster webserver and the daemon running until Ctrl-C.")
@click.option("--resume", is_flag=True, help="Start the servers and Dagster on the state of an earlier demo.")
@click.option("--ui-port", type=int, help="The port of the Dagster UI. [default: 3000, or any free port]")
@click.option("--zookeeper", metavar="HOST:PORT[/CHROOT]", help="Use a running Kafka cluster, by its ZooKeeper.")
@click.option("--bootstrap", metavar="HOST:PORT", help="Use a running Kafka cluster, by the address of a broker.")
def main(
    *, home: Path, ui: bool, resume: bool, ui_port: int | None, zookeeper: str | None, bootstrap: str | None
) -> None:
    """Show Penstock end to end on this machine."""
    _end_on_signals()
    state = DemoState(home=home.absolute())
    if not resume:
        state.begin(zookeeper=zookeeper, bootstrap=bootstrap)
    elif not state.settings.exists():
        raise click.UsageError(f"there is no demo in {home}; run `make demo` first")
    os.environ[PATH_VARIABLE] = str(state.settings)
    os.environ["DAGSTER_HOME"] = str(state.dagster_home)
    with servers(state):
        proven = resume or _story(state)
        if ui or resume:
            _serve(state, ui_port)
    sys.exit(0 if proven else 1)


def _story(state: DemoState) -> bool:
    with dg.DagsterInstance.get() as instance:
        proven = run_story(state, instance)
        settings = Settings.load(state.settings)
        proven = HoursStory(state=state, instance=instance, settings=settings).run() and proven
        proven = ForgottenStory(state=state, settings=settings).run() and proven
    close_session()
    _end_on_signals()  # Dagster and Spark have installed their own handlers
    click.echo(f"\nThe tables are in {state.home / 'lake'}: one table per topic, in the folder of its cluster.")
    click.echo(f"The settings, with the formats of the topics: {state.settings}")
    click.echo(
        f"Show their columns:     .venv/bin/penstock --settings {state.settings} schema flights --cluster {CLUSTER}"
    )
    click.echo(f"Verify them again:      .venv/bin/penstock --settings {state.settings} verify --all")
    click.echo("Open Dagster on them:   make ui (complete hours are partitions of lake/modern/departures/hours)")
    return proven


def _end_on_signals() -> None:
    """Raise KeyboardInterrupt on SIGINT and SIGTERM. Shells start background processes with SIGINT ignored."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)


def _serve(state: DemoState, ui_port: int | None) -> None:
    port, code_port = ui_port or free_port(preferred=_DEFAULT_UI_PORT), free_port()
    workspace = state.home / "workspace.yaml"
    workspace.write_text(_WORKSPACE.format(port=code_port))
    code = ["-m", "pipelines.definitions", "--host", "127.0.0.1", "--port", str(code_port)]
    commands = (
        ["dagster", "code-server", "start", *code, "--location-name", "penstock"],
        ["dagster._daemon", "run", "-w", str(workspace)],
        ["dagster_webserver", "-h", "127.0.0.1", "-p", str(port), "-w", str(workspace)],
    )
    # Two processes that create the storage at the same time would disturb each other.
    dg.DagsterInstance.get().dispose()
    with ExitStack() as stack:
        processes = [stack.enter_context(running(command, state.logs / f"{command[0]}.log")) for command in commands]
        publish = f".venv/bin/penstock --settings {state.settings} publish --cluster {CLUSTER}"
        click.echo(f"\nThe Dagster UI: http://127.0.0.1:{port} (loopback only; it has no login)")
        click.echo("The sensor for new topics runs. Publish to a new topic; its asset appears within half a minute:")
        click.echo(f"  seq 1000 | {publish} numbers -")
        click.echo("Ctrl-C ends everything. The tables and the state of Dagster stay.")
        try:
            while all(process.poll() is None for process in processes):
                time.sleep(0.5)
            raise click.ClickException(f"Dagster's code server, daemon or webserver ended; see {state.logs}")
        except KeyboardInterrupt:
            click.echo("\nEnding ...")


main()
