"""docs/output.schema.json, made from the dataclasses that `--json` prints: one object for every command and every end.

Later versions can add fields. They do not remove fields or change their meaning without a note in the changelog.
"""

import inspect
import re
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from dataclasses import Field as DataclassField
from datetime import date, datetime
from enum import IntEnum
from functools import cache, reduce
from operator import or_
from types import GenericAlias, UnionType
from typing import Annotated, Any, Literal, Union, cast, get_args, get_origin, get_type_hints

from pydantic import BaseModel, Field, TypeAdapter, create_model

from kafka_io.cluster.open_transactions import OpenTransaction
from kafka_io.model import OffsetRange
from pipelines.certificates.certificate import Certificate
from pipelines.cli.config_tests.result import CheckResult
from pipelines.cli.init import CreatedSettings
from pipelines.cli.publish import PublishedTopic
from pipelines.comparison.deep_verify import DeepProof
from pipelines.cursors.export import ExportedCursor
from pipelines.cursors.import_offsets import OffsetsImport
from pipelines.fetch.warming import WarmDecoder
from pipelines.ledger.failure import SliceFailure
from pipelines.maintenance.clean import CleanResult
from pipelines.maintenance.erase_result import TopicErase
from pipelines.maintenance.erased_files import ErasedFiles
from pipelines.maintenance.history import CommitOfOthers, PrintedCommit
from pipelines.maintenance.retire import RetiredFiles
from pipelines.maintenance.rewind import RewoundTable
from pipelines.reports.last_error import LastError
from pipelines.reports.outcome import TopicLoad
from pipelines.rewrites.redecode_result import TopicRedecode
from pipelines.rewrites.replay_result import TopicReplay
from pipelines.rewrites.rewrite_result import TopicRewrite
from pipelines.rewrites.topic_schema import TopicSchema
from pipelines.state_tables.update import StateUpdate
from pipelines.status.completeness import CompletedTable
from pipelines.status.status import ShownTopic
from pipelines.table.open_table import TableSize
from pipelines.verify.verify import Proof
from resources.explanations.explanation import ExitCode, Explanation
from resources.printed import HIDDEN, INLINED, PrintedError, PrintedRange, printed_properties
from resources.settings.settings_reference import meanings

_IMPORTED_LATE = {
    class_.__name__: class_ for class_ in (CheckResult, LastError, OpenTransaction, SliceFailure, TableSize)
}
"""The classes that other modules import only for the type checker."""
_STATE_PROOF = (
    "Only with a state table: its `version` of the topic's table, and the keys that are missing, extra or wrong."
)
_Model = type[BaseModel]


def _members(class_: type, always: type) -> Iterator[tuple[str, Any, Any]]:
    """The names that are printed of a dataclass, with their types, and what pydantic knows of the fields.

    The fields that its parent `always` does not have are only printed sometimes.
    """
    hints, texts = _hints(class_), meanings(class_)
    names_always = {item.name for item in fields(always)}
    for item in fields(class_):
        hint = PrintedRange if hints[item.name] is OffsetRange else hints[item.name]
        if item.metadata == INLINED:
            yield from _members(hint, always=hint)
        elif item.metadata != HIDDEN:
            default = {} if item.name in names_always else _default(item)
            yield item.name, hint, _field(texts.get(item.name), **default)
    for name, member in printed_properties(class_).items():
        yield name, _hints(member.compute)["return"], _field(member.__doc__)


def _hints(annotated: Any) -> dict[str, Any]:
    return get_type_hints(annotated, localns=_IMPORTED_LATE)


def _default(item: DataclassField[Any]) -> dict[str, Any]:
    return {"default": item.default} if item.default_factory is MISSING else {"default": item.default_factory()}


def _field(text: str | None, **more: Any) -> Any:
    """The field with a docstring, in which None is called null."""
    return Field(description=text and re.sub("^None", "Null", text).replace("None", "null"), **more)


@cache
def _model(class_: type) -> _Model:
    """The JSON of a dataclass as a model of pydantic."""
    return _result(class_, name=class_.__name__)


def _result(class_: type, *, name: str = "", always: type | None = None, **added: Any) -> _Model:
    """The model of a dataclass, and of fields that the command adds. For `always` see `_members`."""
    members: dict[str, Any] = {
        name: (_json_type(hint), field) for name, hint, field in _members(class_, always or class_)
    }
    text = inspect.cleandoc(class_.__doc__ or "").partition("\n\n")[0].replace("None", "null")
    return create_model(name or f"Printed{class_.__name__}", __doc__=text, **members, **added)


def _json_type(hint: Any) -> Any:
    """The type that the JSON of a type has."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in {Union, UnionType}:
        return reduce(or_, map(_json_type, arguments))
    if arguments and issubclass(origin, Mapping):
        return GenericAlias(dict, (str, _json_type(arguments[1])))
    if arguments:
        return GenericAlias(list, (_json_type(arguments[0]),))
    if hasattr(hint, "printed"):
        return _json_type(_hints(hint.printed)["return"])
    if is_dataclass(hint):
        return _model(cast("type", hint))
    return str if hint in {date, datetime} else int if issubclass(hint, IntEnum) else hint


_RESULTS: Mapping[str, Any] = {
    "load": _result(TopicLoad, cluster=str),
    "replay": _result(TopicReplay, cluster=str),
    "redecode": _result(TopicRedecode, cluster=str),
    "rewrite": _result(TopicRewrite, cluster=str),
    "erase": _result(TopicErase, cluster=str)
    | _result(ErasedFiles, cluster=str, topic=str)
    | _result(Certificate, cluster=str),
    "verify": _result(
        DeepProof,
        always=Proof,
        cluster=str,
        state=(dict[str, int] | None, _field(_STATE_PROOF, default=None)),
    ),
    "state": _result(StateUpdate, cluster=str),
    "clean": _result(
        CleanResult,
        cluster=str,
        topic=str,
        state=(
            _model(CleanResult) | None,
            _field("The same for the state table of the topic, if the settings name one."),
        ),
        retired=(
            _model(RetiredFiles) | None,
            _field("The files with old rows that were taken out of the table; null without `keep_days`."),
        ),
        erased=(
            list[_model(ErasedFiles)],  # type: ignore[misc]
            _field("What was deleted because of erasures: for the table of the topic, and for its state table."),
        ),
    ),
    "complete": _result(CompletedTable),
    "status": _result(ShownTopic),
    "topics": _result(ShownTopic),
    "history": _result(PrintedCommit, always=CommitOfOthers),
    "rewind": _result(RewoundTable, version=int),
    "schema": _result(TopicSchema),
    "publish": _result(PublishedTopic),
    "warm": _result(WarmDecoder),
    "offsets export": _result(ExportedCursor),
    "offsets import": _result(OffsetsImport, cluster=str, version=int | None),
    "init": _result(CreatedSettings),
    "config check": _result(CheckResult),
    "config show": dict[str, Any],
    "explain": _result(Explanation),
}
_WITHOUT_RESULTS = (
    *("", "broker", "completion", "config", "config reference", "config schema"),
    *("offsets", "registry", "tail", "zookeeper"),
)


def _output(command: str) -> Any:
    """The one object that a command prints."""
    exit_codes = "; ".join(f"{code}: {code.meaning}" for code in ExitCode)
    members: dict[str, Any] = {
        "command": (Literal[command], _field("The name of the command; empty if the command line names none.")),
        "exit_code": (int, _field(f"{exit_codes}.")),
        "errors": (
            GenericAlias(list, (_model(PrintedError),)),
            _field("All errors of the command, including those of its results."),
        ),
        "results": (
            GenericAlias(list, (_RESULTS.get(command, Any),)),
            Field(max_length=None if command in _RESULTS else 0),
        ),
    }
    return create_model(f"OutputOf{command.title().replace(' ', '')}", **members)


_OUTPUTS: Any = reduce(or_, map(_output, (*_RESULTS, *_WITHOUT_RESULTS)))
OUTPUT: TypeAdapter[Any] = TypeAdapter(Annotated[_OUTPUTS, Field(discriminator="command")])
"""Everything that `--json` prints, except the records of `penstock tail`, which are one object per line."""


def schema() -> dict[str, Any]:
    """The JSON Schema of OUTPUT."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "penstock --json",
        **OUTPUT.json_schema(),
    }
