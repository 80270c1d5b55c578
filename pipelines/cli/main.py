"""The `penstock` command: its subcommands, and the handling of their errors.

`resources/explanations` has the exit codes. Results go to stdout (`--json` for scripts), progress and errors to stderr.
An error is one sentence with its code, which `penstock explain` explains; `--debug` adds the traceback.
"""

import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import click

from pipelines.cli.complete import complete_command
from pipelines.cli.completion import completion_command
from pipelines.cli.config import config_group
from pipelines.cli.erase import erase_command
from pipelines.cli.explain import explain_command
from pipelines.cli.init import init_command
from pipelines.cli.load import load_command
from pipelines.cli.metrics import metrics_command
from pipelines.cli.offsets import offsets_group
from pipelines.cli.options import GlobalOptions
from pipelines.cli.output import log_lines, terminal
from pipelines.cli.output.result import print_json, remember_words, wants_json
from pipelines.cli.publish import publish_command
from pipelines.cli.replay import replay_command
from pipelines.cli.servers import broker_command, registry_command, zookeeper_command
from pipelines.cli.state import state_command
from pipelines.cli.status import status_command, topics_command
from pipelines.cli.tables import clean_command, verify_command
from pipelines.cli.tail import tail_command
from pipelines.cli.typed_tables import redecode_command, rewrite_command, schema_command
from pipelines.cli.versions import history_command, rewind_command
from pipelines.cli.warm import warm_command
from resources.explanations.codes import coded, row_of
from resources.explanations.explanation import ExitCode
from resources.printed import printed
from resources.settings.settings import PATH_VARIABLE

LOG_FORMAT_VARIABLE = "PENSTOCK_LOG_FORMAT"
COMMANDS = (
    broker_command,
    clean_command,
    complete_command,
    completion_command,
    config_group,
    erase_command,
    explain_command,
    history_command,
    init_command,
    load_command,
    metrics_command,
    offsets_group,
    publish_command,
    registry_command,
    redecode_command,
    replay_command,
    rewind_command,
    rewrite_command,
    schema_command,
    state_command,
    status_command,
    tail_command,
    topics_command,
    verify_command,
    warm_command,
    zookeeper_command,
)


class _Group(click.Group):
    """The command group. It turns an error of a command into one sentence and an exit code."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        remember_words(ctx, args)
        with _errors_reported(ctx):
            return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        with _errors_reported(ctx):
            return super().invoke(ctx)


@contextmanager
def _errors_reported(ctx: click.Context) -> Iterator[None]:
    """Print an error of the `with` block, with `--json` also as JSON, and end with its exit code."""
    try:
        yield
    except (click.exceptions.Exit, BrokenPipeError):
        raise
    except (KeyboardInterrupt, click.Abort) as error:  # click raises Abort for Ctrl-C at a prompt
        log_lines.error("interrupted")
        _end(ctx, ExitCode.INTERRUPTED, error, "interrupted")
    except click.ClickException as error:
        code = row_of(type(error)).code
        if log_lines.is_json():
            log_lines.error(error.format_message(), code=code)
        else:
            _show_wrong_use(error, code)
        _end(ctx, error.exit_code, error, error.format_message())
    except Exception as error:  # noqa: BLE001 - every error becomes a sentence; --debug adds its traceback
        if ctx.params.get("debug"):
            log_lines.trace(traceback.format_exc().rstrip())
        log_lines.failure(_printed(error))
        _end(ctx, row_of(type(error)).exit_code, error)


def _show_wrong_use(error: click.ClickException, code: str) -> None:
    """Print an error of click, with the usage of the command and its code. It leads on to `--help`."""
    message = coded(error.format_message(), code)
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        error.show()
    elif isinstance(error, click.UsageError):
        click.UsageError(message, ctx=error.ctx).show()
    else:
        click.ClickException(message).show()


def _end(ctx: click.Context, exit_code: int, error: BaseException, message: str | None = None) -> None:
    """Print the error as JSON if the command line asks for it, and end with the exit code."""
    if wants_json(ctx):
        failure = _printed(error)
        with terminal.reader_may_leave():
            print_json(exit_code, errors=[failure if message is None else {**failure, "message": message}])
    ctx.exit(exit_code)


def _printed(error: BaseException) -> Mapping[str, Any]:
    """The error object of `--json`."""
    from kafka_io.errors import Where
    from pipelines.ledger.failure import SliceFailure

    return dict(printed(SliceFailure.of(error, Where())))


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
@click.option("--debug", is_flag=True, help="Show the stack trace of an error, with the messages of other programs.")
@click.option(
    "--log-format",
    type=click.Choice([log_format.value for log_format in log_lines.LogFormat]),
    default=log_lines.LogFormat.TEXT.value,
    envvar=LOG_FORMAT_VARIABLE,
    help="What stderr has: sentences, or a JSON object per line with run, topic and partition. "
    f"[env: {LOG_FORMAT_VARIABLE}]",
)
@click.version_option(package_name="penstock-etl")
@click.pass_context
def main(ctx: click.Context, settings_file: str | None, debug: bool, log_format: str) -> None:
    """Load Kafka topics into Delta tables, exactly once.

    Exit code 0: success; 1: failure, also of several kinds; 2: wrong use or settings; 3: try again later, a server or
    the store does not answer; 4: you must choose, the log and the table do not fit; 5: rows are wrong or not proven;
    6: a login or a right is refused; 130: interrupted. `penstock explain` explains the code of an error.

    \b
    Examples:
      penstock init
      penstock config check
      penstock topics
      penstock load clicks
      penstock load --all --json
      penstock verify --all
      penstock explain PS-301
    """
    ctx.obj = GlobalOptions(settings_file=settings_file, debug=debug)
    ctx.with_resource(log_lines.configured(log_lines.LogFormat(log_format), command=ctx.invoked_subcommand))
