"""Every error that a user can meet has a code with an explanation, and a code never gets another meaning."""

import ast
import builtins
import json
from importlib import import_module
from pathlib import Path

import click
import pytest

from kafka_io.errors import ConnectFailed, LocatedError, Where
from pipelines.ledger.work import SliceFailure
from resources.errors import CursorExpired
from resources.explanations.codes import EXPLANATIONS, RETIRED, code_of, exit_code_of, explanation_of
from resources.explanations.explanation import FAMILIES, ExitCode, Explanation
from tests.syntax_trees import product_trees

GOLDEN = Path(__file__).with_name("error_codes.json")
"""Every code that was ever released, with the name of its error. Lines are only added."""
ABSTRACT = {"LocatedError", "KafkaIOError", "WireError", "LoadError"}
"""Bases that are never raised."""


def typed_errors() -> dict[str, str]:
    """The names of all classes of located errors, each with its module."""
    classes = {
        node.name: (path, {ast.unparse(base) for base in node.bases})
        for path, tree in product_trees().items()
        for node in tree.body
        if isinstance(node, ast.ClassDef)
    }
    names, count = {"LocatedError"}, 0
    while len(names) > count:
        count = len(names)
        names |= {name for name, (_, bases) in classes.items() if bases & names}
    return {name: ".".join(classes[name][0].with_suffix("").parts) for name in sorted(names)}


def test_every_error_has_a_row() -> None:
    kinds = {kind for row in EXPLANATIONS.values() for kind in row.kinds}
    errors = typed_errors()
    assert len(errors) > 80
    assert set(errors) - ABSTRACT - kinds == set()


def test_every_row_is_of_an_error_that_exists() -> None:
    known = {*typed_errors(), *dir(builtins), *dir(click), *dir(click.exceptions)}
    assert {kind for row in EXPLANATIONS.values() for kind in row.kinds} - known == set()


def test_no_code_and_no_error_is_there_twice() -> None:
    rows = list(EXPLANATIONS.values())
    numbers = [row.number for row in rows]
    assert numbers == sorted(numbers)
    kinds = [kind for row in rows for kind in row.kinds]
    assert len(kinds) == len(set(kinds))
    assert {row.number // 100 for row in rows} == FAMILIES.keys()


def test_a_code_never_gets_another_meaning() -> None:
    """A new code is added to the file; the code of an error that is removed goes to RETIRED, with what became of it."""
    released = json.loads(GOLDEN.read_text())
    assert not RETIRED.keys() & EXPLANATIONS.keys()
    assert {code: row.kind for code, row in EXPLANATIONS.items()} == {
        code: kind for code, kind in released.items() if code not in RETIRED
    }
    assert RETIRED.keys() <= released.keys()


def test_the_exit_code_says_try_again_exactly_where_the_error_is_retriable() -> None:
    for name, module in typed_errors().items():
        error = getattr(import_module(module), name)
        if name not in ABSTRACT:
            is_temporary = explanation_of(error).exit_code is ExitCode.TRY_AGAIN
            assert is_temporary == error.retriable, name


@pytest.mark.parametrize("row", EXPLANATIONS.values(), ids=lambda row: row.code)
def test_an_explanation_is_complete_sentences(row: Explanation) -> None:
    assert row.title[0].isupper() or row.title.startswith("`")
    assert not row.title.endswith(".")
    assert row.repairs
    for text in (row.meaning, row.causes, *row.repairs):
        assert text.endswith("."), text
        assert text.count("`") % 2 == 0, text
        assert "  " not in text, text


def test_a_class_without_a_row_has_that_of_its_base() -> None:
    own = type("OwnError", (CursorExpired,), {})
    assert code_of(own) == "PS-301"
    assert code_of(type("Strange", (Exception,), {})) == "PS-901"
    assert code_of(click.NoSuchOption) == "PS-102"
    assert code_of(IsADirectoryError) == "PS-712"


def test_a_failure_of_an_earlier_version_has_the_code_of_its_kind() -> None:
    assert SliceFailure(kind="CursorExpired", reason="gone").code == "PS-301"
    assert SliceFailure(kind="ConnectionRefusedError", reason="no").code == "PS-712"
    assert SliceFailure(kind="NobodyKnows", reason="no").code == "PS-901"


def test_a_failure_keeps_the_code_of_its_class() -> None:
    own = type("OwnError", (ConnectFailed,), {})
    failure = SliceFailure.of(own("no answer"), Where(topic="clicks"))
    assert (failure.kind, failure.code, failure.as_dict()["code"]) == ("OwnError", "PS-201", "PS-201")
    assert str(failure) == "OwnError: no answer [topic=clicks] (PS-201)"
    assert issubclass(own, LocatedError)


@pytest.mark.parametrize(
    ("codes", "exit_code"),
    [
        ([], ExitCode.SUCCESS),
        (["PS-201", "PS-401", "PS-405"], ExitCode.TRY_AGAIN),
        (["PS-301", "PS-304"], ExitCode.CHOICE_NEEDED),
        (["PS-409"], ExitCode.NOT_PROVEN),
        (["PS-211", "PS-402"], ExitCode.REFUSED),
        (["PS-201", "PS-301"], ExitCode.FAILED),
        (["PS-901", "PS-201"], ExitCode.FAILED),
    ],
)
def test_failures_of_several_kinds_are_exit_code_1(codes: list[str], exit_code: ExitCode) -> None:
    assert exit_code_of(codes) is exit_code
