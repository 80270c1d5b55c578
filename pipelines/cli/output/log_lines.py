"""What commands say on stderr: sentences for people, or with `--log-format json` a JSON object per line.

Both have the same sentences. An object also has the place as fields: run, cluster, topic, partition, offset. Events,
such as the end of the load of a topic, are only objects: for people, the result of the command says the same.
"""

import json
import logging
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

import click
from rich.markup import escape

from kafka_io.errors import Where
from pipelines.cli.output import terminal
from resources.explanations.codes import coded

_LOGGER = logging.getLogger("penstock")
_COMPILING = logging.getLogger("kafka_io.jit.compiling")  # it says what is compiled, which is no warning
_FIELDS = "penstock_fields"
_EXPLAINED = "penstock.explained"
_PLACE = ("cluster", "broker", "topic", "partition", "offset")
_common: dict[str, Any] = {}
"""Fields of every object, such as the run."""


class LogFormat(StrEnum):
    """The values of `--log-format`."""

    TEXT = "text"
    JSON = "json"


class _JsonLine(logging.Formatter):
    """Formats a record of any logger as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """One JSON object for a record of Python's logging."""
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **_common,
            **getattr(record, _FIELDS, {}),
        }
        if record.exc_info:
            line["trace"] = self.formatException(record.exc_info)
        return json.dumps({name: value for name, value in line.items() if value is not None}, default=str)


class _State:
    """The handler of this process that prints JSON; None while lines are text."""

    handler: logging.Handler | None = None


def is_json() -> bool:
    """Whether lines are JSON."""
    return _State.handler is not None


@contextmanager
def configured(log_format: LogFormat, *, command: str | None) -> Iterator[None]:
    """Print all lines in this format until the end of the `with` block, also those of libraries that use `logging`."""
    _COMPILING.setLevel(logging.INFO)
    if log_format is LogFormat.TEXT:
        with _as_sentences():
            yield
        return
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_JsonLine())
    root, level = logging.getLogger(), _LOGGER.level
    root.addHandler(handler)
    _LOGGER.setLevel(logging.INFO)
    _State.handler = handler
    try:
        with common_fields(command=command):
            yield
    finally:
        _State.handler = None
        _LOGGER.setLevel(level)
        root.removeHandler(handler)


class _Sentences(logging.Handler):
    """Prints records of Python's logging for people: warnings as warnings, and other records as plain lines."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print one record."""
        if record.levelno >= logging.WARNING:
            warning(record.getMessage())
        elif not terminal.is_quiet():
            terminal.err.print(safe(record.getMessage()), soft_wrap=True, highlight=False)


@contextmanager
def _as_sentences() -> Iterator[None]:
    """Print what kafka_io logs for people until the end of the `with` block (faults F02, F04)."""
    handler, logger = _Sentences(), logging.getLogger("kafka_io")
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)


@contextmanager
def common_fields(**fields: Any) -> Iterator[None]:
    """Add fields to each JSON object that is printed in the `with` block."""
    before = dict(_common)
    _common.update(fields)
    try:
        yield
    finally:
        _common.clear()
        _common.update(before)


def event(message: str, **fields: Any) -> None:
    """Print an event as JSON, unless `--quiet` was given. Lines for people do not have it."""
    if not terminal.is_quiet():
        _log(logging.INFO, message, fields)


def error(message: str, *, code: str | None = None, **place: Any) -> None:
    """Print a sentence about an error, with its code at the end. Control characters are escaped (fault X05)."""
    if is_json():
        _log(logging.ERROR, message, {"code": code, **place})
    else:
        _print("[bad]penstock:[/]", coded(message, code), place)
        lead_on(code)


def failure(failure: Mapping[str, Any], *, topic: str | None = None) -> None:
    """Print an error object. As a sentence it begins with the topic, if one is given."""
    if is_json():
        own = {name: value for name, value in failure.items() if name not in {"message", "trace"}}
        _log(logging.ERROR, failure["message"], {"topic": topic, **_known(own)})
    else:
        error(error_text(failure), code=failure["code"], topic=topic)


def warning(message: str, **place: Any) -> None:
    """Print a warning, unless `--quiet` was given. Control characters are escaped (fault X05)."""
    if terminal.is_quiet():
        return
    if is_json():
        _log(logging.WARNING, message, place)
    else:
        _print("[warn]warning:[/]", message, place)


def trace(text: str) -> None:
    """Print the stack trace of an error."""
    if is_json():
        _log(logging.ERROR, "the stack trace of the error", {"trace": text})
    else:
        sys.stderr.write(f"{text}\n")


def error_text(error: Mapping[str, Any]) -> str:
    """An error object as one sentence with its place, without its code."""
    location, message = str(Where(**{name: error[name] for name in _PLACE})), error["message"]
    hint = "; the same command can succeed later" if error["retriable"] and "again" not in message else ""
    return f"{error['kind']}: {message}" + (f" [{location}]" if location else "") + hint


def printable(text: str) -> str:
    """`text` with escapes instead of the characters that would control a terminal (fault X05)."""
    return text if text.isprintable() else "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


def safe(text: str) -> str:
    """Text from outside, such as a topic name: neither the terminal nor rich interprets it."""
    return escape(printable(text))


def lead_on(*codes: str | None) -> None:
    """Name the command that explains a code, once for each code of a command. Programs that read JSON need no hint."""
    context = click.get_current_context(silent=True)
    if context is None or is_json():
        return
    explained: set[str] = context.find_root().meta.setdefault(_EXPLAINED, set())
    for code in codes:
        if code and code not in explained:
            explained.add(code)
            hint = f"`penstock explain {code}` says what this means and what to do"
            terminal.err.print(f"[dim]{hint}[/]", soft_wrap=True, highlight=False)


def forget_hints() -> None:
    """Let the next errors name the command again, because the lines that named it are not seen any more."""
    context = click.get_current_context(silent=True)
    if context is not None:
        context.find_root().meta.pop(_EXPLAINED, None)


def _known(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _log(level: int, message: str, fields: Mapping[str, Any]) -> None:
    if is_json():
        _LOGGER.log(level, "%s", message, extra={_FIELDS: _known(fields)})


def _print(prefix: str, message: str, place: Mapping[str, Any]) -> None:
    """Print a sentence, which begins with the topic if it is about one."""
    topic = f"{safe(str(place['topic']))}: " if place.get("topic") else ""
    terminal.err.print(f"{prefix} {topic}{safe(message)}", soft_wrap=True, highlight=False)
