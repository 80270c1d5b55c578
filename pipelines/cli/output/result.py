"""The result of a command: for people, or with `--json` one object of the same shape for every command and every end.

`pipelines/cli/output_schema.py` describes the object, docs/json.md explains it.
"""

import json
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import wraps
from typing import TYPE_CHECKING, Any

import click
import msgspec

from pipelines.cli.output import log_lines, terminal
from resources.explanations.codes import combined, exit_code_of
from resources.explanations.explanation import ExitCode
from resources.printed import printed
from resources.settings.settings import SettingsError

if TYPE_CHECKING:
    from pipelines.ledger.failure import Failable, SliceFailure

_WORDS = "penstock.words"
_STREAM = "tail"
_STREAM_OPTION = "--watch"

json_option = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
quiet_option = click.option("--quiet", "-q", is_flag=True, help="Print nothing but errors, and with --json the result.")


@dataclass(slots=True)
class Errors:
    """The errors of a command's parts. A part that fails, such as a table or a cluster, does not stop the others."""

    failures: list["SliceFailure"] = field(default_factory=list)

    @contextmanager
    def caught(self, *, cluster: str, topic: str | None = None) -> Iterator[None]:
        """Keep an error of the `with` block. Wrong use still ends the command, and so does a closed output pipe."""
        try:
            yield
        except (click.ClickException, click.exceptions.Exit, SettingsError, BrokenPipeError):
            raise
        except Exception as error:  # noqa: BLE001 - the error is printed with its place, and ends the command
            from kafka_io.errors import Where
            from pipelines.ledger.failure import SliceFailure

            self.failures.append(SliceFailure.of(error, Where(cluster=cluster, topic=topic)))


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandResult:
    """The result of a command.

    Args:
        records: the `results` that `--json` prints. A result can have `errors` of its own.
        show: prints the records and their errors for people.
        ends: the exit codes of results that failed; see `ends_of`.
        errors: the errors that belong to no result.
        traces: stack traces of errors, which `--debug` prints.
    """

    records: Sequence[Mapping[str, Any]]
    show: Callable[[Sequence[Mapping[str, Any]]], None]
    ends: Collection[ExitCode] = ()
    errors: Sequence["SliceFailure"] = ()
    traces: Sequence[str | None] = ()

    @property
    def exit_code(self) -> ExitCode:
        """The exit code of a command with this result."""
        return combined([*self.ends, exit_code_of(failure.code for failure in self.errors)])

    def print(self, *, as_json: bool) -> None:
        """Print the result with its errors."""
        self._print_records(as_json=as_json)
        self._print_errors()

    def _print_records(self, *, as_json: bool) -> None:
        if as_json:
            print_json(self.exit_code, self.records, printed(self.errors))
        else:
            self.show(self.records)

    def _print_errors(self) -> None:
        for failure in self.errors:
            log_lines.failure(printed(failure))
        for trace in (*self.traces, *(failure.trace for failure in self.errors)):
            show_trace(trace)

    def finish(self, *, as_json: bool) -> None:
        """Print the result, and end the command if it failed, also if nobody reads the result to its end."""
        with terminal.reader_may_leave():
            self._print_records(as_json=as_json)
        self._print_errors()
        if self.exit_code:
            raise click.exceptions.Exit(self.exit_code)


def result_of_topic(
    cluster: str, result: "Failable", show: Callable[[Sequence[Mapping[str, Any]]], None]
) -> CommandResult:
    """The result of a command that changes the table of one topic."""
    records = [{"cluster": cluster, **printed(result)}]
    traces = [result.failure.trace] if result.failure else []
    return CommandResult(records=records, show=show, ends=ends_of(records), traces=traces)


def ends_of(results: Iterable[Mapping[str, Any]]) -> Collection[ExitCode]:
    """The exit codes that results have because of their errors."""
    return [exit_code_of(error["code"] for error in result["errors"]) for result in results]


def show_trace(trace: str | None) -> None:
    """Print the stack trace of an error on stderr, with `--debug` only. It has the texts of other programs."""
    context = click.get_current_context(silent=True)
    if trace and context and context.obj.debug:
        log_lines.trace(trace)


def prints_result(command: Callable[..., CommandResult]) -> Callable[..., None]:
    """Add `--json` and `--quiet` to a command, give it the global options, and print its result."""

    @json_option
    @quiet_option
    @click.pass_obj
    @wraps(command)
    def run(*arguments: Any, as_json: bool, quiet: bool, **options: Any) -> None:
        with terminal.quieted(quiet=quiet):
            command(*arguments, **options).finish(as_json=as_json)

    return run


def remember_words(context: click.Context, words: Sequence[str]) -> None:
    """Keep the words of the command line, so that wrong use can be reported as JSON before the words are understood."""
    context.find_root().meta[_WORDS] = tuple(words)


def wants_json(context: click.Context) -> bool:
    """Whether the command line contains `--json`."""
    return "--json" in context.find_root().meta.get(_WORDS, ())


def print_json(
    exit_code: int, results: Sequence[Mapping[str, Any]] = (), errors: Sequence[Mapping[str, Any]] = ()
) -> None:
    """Print the one object of `--json` on stdout. Its `errors` are those given and those of the results."""
    command = _command_name()
    all_errors = [*errors, *(error for result in results for error in result.get("errors", ()))]
    document = {"command": command, "exit_code": exit_code, "errors": all_errors, "results": list(results)}
    text = json.dumps(document)
    # With an indent, Python's own encoder takes ten times as long: a second for 2,000 topics.
    sys.stdout.write(text if _is_stream(command) else msgspec.json.format(text, indent=2))
    sys.stdout.write("\n")
    sys.stdout.flush()  # raises BrokenPipeError here, where main handles it, if the reader of the pipe has ended


def _is_stream(command: str) -> bool:
    """Whether the command prints many objects, each on one line."""
    words = click.get_current_context().find_root().meta.get(_WORDS, ())
    return command == _STREAM or any(word.partition("=")[0] == _STREAM_OPTION for word in words)


def _command_name() -> str:
    """The name of the command on the command line, such as `offsets export`; empty if it names none."""
    root = click.get_current_context().find_root()
    command, names = root.command, []
    for word in root.meta.get(_WORDS, ()):
        if isinstance(command, click.Group) and word in command.commands:
            command = command.commands[word]
            names.append(word)
    return " ".join(names)
