"""Mutants differ from their module in one place, and each kind of change is made."""

from pathlib import Path

import pytest

from tests.mutation.__main__ import FILES, ROOT
from tests.mutation.equivalent import EQUIVALENT
from tests.mutation.mutants import mutants_of


@pytest.mark.parametrize(
    ("code", "change"),
    [
        ("x < 1", "x < 1 -> x <= 1"),
        ("x != 1", "x != 1 -> x == 1"),
        ("a and b", "a and b -> a or b"),
        ("not a", "not a -> a"),
        ("y = min(a, b)", "min(a, b) -> max(a, b)"),
        ("y = a + 1", "a + 1 -> a"),
        ("if a:\n    raise E", "if a: -> pass"),
        ("check(a)", "check(a) -> pass"),
        ("y = True", "True -> False"),
    ],
)
def test_each_kind_of_change_is_made(code: str, change: str, tmp_path: Path) -> None:
    (tmp_path / "module.py").write_text(f"def function():\n    {code.replace(chr(10), chr(10) + '    ')}\n")
    [mutant] = mutants_of(tmp_path, "module.py")
    assert (mutant.function, mutant.change, mutant.lines) == ("function", change, (2, 1 + len(code.splitlines())))
    assert mutant.compiled(tmp_path) != compile((tmp_path / "module.py").read_text(), "module.py", "exec")


def test_annotations_and_decorators_stay(tmp_path: Path) -> None:
    (tmp_path / "module.py").write_text(
        "@decorated(flag=True)\ndef function(x: Literal[True] = y) -> Literal[False]: zip(a, strict=True)\n"
    )
    assert [mutant.change for mutant in mutants_of(tmp_path, "module.py")] == ["zip(a, strict=True) -> pass"]


def test_every_equivalent_mutant_still_exists() -> None:
    files = {file for file, _, _ in EQUIVALENT}
    existing = {(mutant.file, mutant.function, mutant.change) for file in files for mutant in mutants_of(ROOT, file)}
    assert existing >= set(EQUIVALENT)


def test_every_module_in_the_list_has_mutants() -> None:
    """Except short modules."""
    names = [str(file.relative_to(ROOT)) for file in FILES if file.stat().st_size > 2000]
    assert [name for name in names if not any(mutants_of(ROOT, name))] == []
