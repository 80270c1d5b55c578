"""The `penstock` command: its subcommands, and the handling of their errors.

Exit code 0: success; 1: failure, or a table is not proven; 2: wrong use; 130: interrupted. Results go to stdout
(`--json` for scripts), progress and errors to stderr. An error is one sentence; `--debug` adds the traceback.
"""

import traceback
from typing import Any

import click

from pipelines.cli import console
from pipelines.cli.completion import completion_command
from pipelines.cli.config import config_group
from pipelines.cli.load import load_command
from pipelines.cli.offsets import offsets_group
from pipelines.cli.options import FAILED, INTERRUPTED, WRONG_USE, GlobalOptions
from pipelines.cli.publish import publish_command
from pipelines.cli.replay import replay_command
from pipelines.cli.servers import broker_command, zookeeper_command
from pipelines.cli.status import status_command, topics_command
from pipelines.cli.tables import clean_command, verify_command
from pipelines.cli.tail import tail_command
from pipelines.cli.versions import history_command, rewind_command
from resources.settings import PATH_VARIABLE, SettingsError

COMMANDS = (
    broker_command,
    clean_command,
    completion_command,
    config_group,
    history_command,
    load_command,
    offsets_group,
    publish_command,
    replay_command,
    rewind_command,
    status_command,
    tail_command,
    topics_command,
    verify_command,
    zookeeper_command,
)


class _Group(click.Group):
    """The command group. It turns an error of a command into one sentence and an exit code."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (click.exceptions.Exit, click.ClickException, BrokenPipeError):
            raise
        except (KeyboardInterrupt, click.Abort):  # click raises Abort for Ctrl-C at a prompt
            console.error("interrupted")
            return ctx.exit(INTERRUPTED)
        except Exception as error:  # noqa: BLE001 - every error becomes a sentence; --debug adds its traceback
            if ctx.params.get("debug"):
                traceback.print_exc()
            console.error(str(error) if isinstance(error, SettingsError) else f"{type(error).__name__}: {error}")
            return ctx.exit(WRONG_USE if isinstance(error, SettingsError) else FAILED)


@click.group(
    cls=_Group,
    commands=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100, "show_default": True},
)
@click.option(
    "--settings",
    "settings_file",
    metavar="FILE",
    type=click.Path(),
    help=f"The settings file. [default: penstock.toml] [env: {PATH_VARIABLE}]",
)
@click.option("--debug", is_flag=True, help="Show tracebacks.")
@click.version_option(package_name="penstock")
@click.pass_context
def main(ctx: click.Context, settings_file: str | None, debug: bool) -> None:
    """Load Kafka topics into Delta tables, exactly once.

    Exit code 0: success; 1: failure, or a table is not proven; 2: wrong use; 130: interrupted.

    \b
    Examples:
      penstock config check
      penstock topics
      penstock load clicks
      penstock load --all --json
      penstock verify --all
    """
    ctx.obj = GlobalOptions(settings_file=settings_file, debug=debug)
