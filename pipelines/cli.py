"""The `penstock` command: its group, and the last door of errors.

Exit code 0: done; 1: failed, or not proven; 2: wrong use; 130: interrupted. Results go to stdout (`--json` for
scripts), progress and errors to stderr. An error is one sentence; `--debug` adds the traceback.
"""

import traceback
from typing import Any

import click

from pipelines import console
from pipelines.commands.broker import broker_command
from pipelines.commands.clean import clean_command
from pipelines.commands.completion import completion_command
from pipelines.commands.config import config_group
from pipelines.commands.history import history_command
from pipelines.commands.load import load_command
from pipelines.commands.offsets import offsets_group
from pipelines.commands.parts import FAILED, INTERRUPTED, WRONG_USE, Options
from pipelines.commands.publish import publish_command
from pipelines.commands.replay import replay_command
from pipelines.commands.rewind import rewind_command
from pipelines.commands.status import status_command
from pipelines.commands.tail import tail_command
from pipelines.commands.topics import topics_command
from pipelines.commands.verify import verify_command
from pipelines.commands.zookeeper import zookeeper_command
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
    """Turns errors into one sentence and an exit code."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (click.exceptions.Exit, click.ClickException, BrokenPipeError):
            raise
        except (KeyboardInterrupt, click.Abort):  # Abort is a Ctrl-C at a question
            console.error("interrupted")
            return ctx.exit(INTERRUPTED)
        except Exception as error:  # noqa: BLE001 - the last door: a sentence, and the traceback if asked for
            if ctx.params.get("debug"):
                traceback.print_exc()
            console.error(str(error) if isinstance(error, SettingsError) else f"{type(error).__name__}: {error}")
            return ctx.exit(WRONG_USE if isinstance(error, SettingsError) else FAILED)


@click.group(
    cls=_Group,
    commands=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option(
    "--settings",
    "settings_file",
    metavar="FILE",
    type=click.Path(),
    help=f"The settings file; penstock.toml by default. [env: {PATH_VARIABLE}]",
)
@click.option("--debug", is_flag=True, help="Show tracebacks.")
@click.version_option(package_name="penstock")
@click.pass_context
def main(ctx: click.Context, settings_file: str | None, debug: bool) -> None:
    """Load Kafka topics into lake tables, exactly once.

    Exit code 0: done; 1: failed, or not proven; 2: wrong use; 130: interrupted.

    \b
    Examples:
      penstock config check
      penstock topics
      penstock load clicks
      penstock load --all --json
      penstock verify --all
    """
    ctx.obj = Options(settings_file=settings_file, debug=debug)
