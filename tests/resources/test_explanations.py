"""Every error that a user can meet has a code with an explanation, and a code never gets another meaning."""

import ast
import builtins
import json
import re
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import click
import pytest

from kafka_io.errors import ConnectFailed, LocatedError, Where
from pipelines.ledger.failure import SliceFailure
from resources.errors import CursorExpired
from resources.explanations import texts
from resources.explanations.codes import RETIRED, ROWS, code_of, exit_code_of, row_of
from resources.explanations.explanation import ExitCode, Explanation
from resources.explanations.texts import explained_in, explanations
from resources.printed import printed
from tests.syntax_trees import product_trees

GOLDEN = Path(__file__).with_name("error_codes.json")
"""Every code that was ever released, with the name of its error. Lines are only added."""
FILES = sorted(Path(texts.__file__).parent.glob("*.md"))
"""The files with the explanations, one for each family."""
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
    kinds = {kind for row in ROWS.values() for kind in row.kinds}
    errors = typed_errors()
    assert len(errors) > 80
    assert set(errors) - ABSTRACT - kinds == set()


@pytest.mark.slow
def test_every_row_is_of_an_error_that_exists() -> None:
    known = {*typed_errors(), *dir(builtins), *dir(click), *dir(click.exceptions)}
    assert {kind for row in ROWS.values() for kind in row.kinds} - known == set()


def test_no_code_and_no_error_is_there_twice() -> None:
    rows = list(ROWS.values())
    numbers = [row.number for row in rows]
    assert numbers == sorted(numbers)
    kinds = [kind for row in rows for kind in row.kinds]
    assert len(kinds) == len(set(kinds))


def test_a_code_never_gets_another_meaning() -> None:
    """A new code is added to the file; the code of an error that is removed goes to RETIRED, with what became of it."""
    released = json.loads(GOLDEN.read_text())
    assert not RETIRED.keys() & ROWS.keys()
    assert {code: row.kind for code, row in ROWS.items()} == {
        code: kind for code, kind in released.items() if code not in RETIRED
    }
    assert RETIRED.keys() <= released.keys()


def test_the_exit_code_says_try_again_exactly_where_the_error_is_retriable() -> None:
    for name, module in typed_errors().items():
        error = getattr(import_module(module), name)
        if name not in ABSTRACT:
            is_temporary = row_of(error).exit_code is ExitCode.TRY_AGAIN
            assert is_temporary == error.retriable, name


def test_every_code_is_explained_once_in_the_file_of_its_family() -> None:
    explained = [explanation for file in FILES for explanation in explained_in(file)]
    assert [explanation.row for explanation in explained] == list(ROWS.values())
    assert explanations() == {explanation.row.code: explanation for explanation in explained}
    for file in FILES:
        assert {str(explanation.row.number // 100) for explanation in explained_in(file)} == {file.name[0]}
        assert len({explanation.family for explanation in explained_in(file)}) == 1
    assert len({explanation.family for explanation in explained}) == len(FILES) > 5


@pytest.mark.parametrize("explanation", explanations().values(), ids=lambda explanation: explanation.row.code)
def test_an_explanation_is_complete_sentences(explanation: Explanation) -> None:
    assert explanation.family
    assert explanation.title[0].isupper() or explanation.title.startswith("`")
    assert not explanation.title.endswith(".")
    assert explanation.repairs
    optional = [explanation.check_repair] if explanation.check_repair else []
    for text in (explanation.meaning, explanation.causes, *explanation.repairs, *optional):
        assert text.endswith("."), text
        assert text.count("`") % 2 == 0, text
        assert "  " not in text, text


SECTION = """\
# Family

## PS-101: Title

It means
much.

Why: Because.

- Do this,
  and that.
- Or this.

In `penstock config check`: Do it
there.

More: start.md#how
"""


def test_lines_of_an_explanation_may_end_anywhere(tmp_path: Path) -> None:
    file = tmp_path / "1-family.md"
    file.write_text(SECTION)
    assert list(explained_in(file)) == [
        Explanation(
            row=ROWS["PS-101"],
            family="Family",
            title="Title",
            meaning="It means much.",
            causes="Because.",
            repairs=("Do this, and that.", "Or this."),
            check_repair="Do it there.",
            page="start.md#how",
        )
    ]


@pytest.mark.parametrize(
    ("part", "instead", "problem"),
    [
        (": Title", "", "the section 'PS-101' has another form than"),
        ("It means\nmuch.\n\n", "", "the section 'PS-101: Title' has another form than"),
        ("Why: Because.\n\n", "", "the section 'PS-101: Title' has another form than"),
        ("\nWhy: Because.\n", "Why: Because.\n", "the section 'PS-101: Title' has another form than"),
        ("- Do this,\n  and that.\n- Or this.\n\n", "", "the section 'PS-101: Title' has another form than"),
        ("More: start.md#how\n", "", "the section 'PS-101: Title' has another form than"),
        ("PS-101", "PS-999", "the table in codes.py has no code PS-999"),
    ],
)
def test_a_file_in_another_form_is_named_with_its_section(
    part: str, instead: str, problem: str, tmp_path: Path
) -> None:
    file = tmp_path / "1-family.md"
    file.write_text(SECTION.replace(part, instead))
    with pytest.raises(ValueError, match=re.escape(f"{file}: {problem}")):
        list(explained_in(file))


def test_a_code_that_no_file_explains_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(texts, "_FOLDER", tmp_path)
    for file in FILES[1:]:
        shutil.copy(file, tmp_path)
    with pytest.raises(ValueError, match=re.escape(f"no file in {tmp_path} explains PS-101, PS-102, PS-103,")):
        texts.explanations.__wrapped__()


OPENS_NO_EXPLANATION = """\
import sys

opened = []
sys.addaudithook(lambda event, values: opened.append(str(values[0])) if event == "open" else None)

import pipelines.fetch.fetch
import pipelines.load.load
from kafka_io.errors import Where
from pipelines.ledger.failure import SliceFailure
from resources.errors import CursorExpired

failure = SliceFailure.of(CursorExpired("gone"), Where(topic="clicks"))
assert str(failure) == "CursorExpired: gone [topic=clicks] (PS-301)"
assert [name for name in opened if name.endswith(".md")] == []
assert "resources.explanations.texts" not in sys.modules

from resources.explanations.texts import explanations

explanations()
assert len([name for name in opened if name.endswith(".md")]) > 5  # so the hook would have seen it
"""


@pytest.mark.slow
def test_a_load_and_a_worker_give_a_failure_its_code_without_the_explanations() -> None:
    """An executor of Spark gets no other files than modules."""
    subprocess.run([sys.executable, "-c", OPENS_NO_EXPLANATION], check=True)


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
    assert (failure.kind, failure.code, printed(failure)["code"]) == ("OwnError", "PS-201", "PS-201")
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
