"""The DAG of the page: its commands exist, and an exit code retries or fails the task as the page says (fault F09)."""

import ast
import subprocess
import sys
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any, ClassVar

import pytest

from resources.explanations.explanation import ExitCode
from tests.docs.deployments import check_command
from tests.docs.pages import ROOT

PAGE = (ROOT / "docs" / "airflow.md").read_text(encoding="utf-8")
CODE = PAGE.partition("```python\n")[2].partition("```")[0]


class Retried(Exception):
    """The task fails, and Airflow retries it."""


class Failed(Retried):
    """The task fails for good."""


class Task:
    """A task of the DAG: `>>` notes the order."""

    order: ClassVar[list[str]] = []

    def __init__(self, name: str) -> None:
        self.name = name

    def __rshift__(self, other: "Task") -> "Task":
        Task.order += [self.name] if not Task.order else []
        Task.order.append(other.name)
        return other


@pytest.fixture
def functions(monkeypatch: pytest.MonkeyPatch) -> dict[str, Callable[[], Any]]:
    """The functions of the tasks, after the page's code ran with stand-ins for Airflow."""
    found: dict[str, Callable[[], Any]] = {}

    def task(function: Callable[[], Any]) -> Callable[[], Task]:
        found[function.__name__] = function
        return lambda: Task(function.__name__)

    task.sensor = lambda **_: task  # type: ignore[attr-defined]
    exceptions = SimpleNamespace(AirflowException=Retried, AirflowFailException=Failed)
    sdk = SimpleNamespace(dag=lambda **_: lambda function: function, task=task)
    for name, members in {"airflow": {}, "airflow.exceptions": vars(exceptions), "airflow.sdk": vars(sdk)}.items():
        module = ModuleType(name)
        module.__dict__.update(members)
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(Task, "order", [])
    exec(CODE, {"__name__": "dag"})
    return found


def test_the_tasks_run_in_this_order(functions: dict[str, Callable[[], Any]]) -> None:  # fault F09
    assert list(functions) == Task.order == ["load", "verify", "complete"]


def test_each_command_of_the_page_exists() -> None:  # fault F09
    calls = [node for node in ast.walk(ast.parse(CODE)) if isinstance(node, ast.Call)]
    commands = [
        ["penstock", *(ast.literal_eval(argument) for argument in call.args)]
        for call in calls
        if isinstance(call.func, ast.Name) and call.func.id == "penstock"
    ]
    assert len(commands) == 3
    for words in commands:
        check_command(words)


@pytest.mark.parametrize("name", ["load", "verify", "complete"])
@pytest.mark.parametrize("code", sorted(ExitCode))
def test_an_exit_code_retries_or_fails(
    name: str, code: ExitCode, functions: dict[str, Callable[[], Any]], monkeypatch: pytest.MonkeyPatch
) -> None:  # fault F09
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: SimpleNamespace(returncode=int(code)))
    try:
        result = functions[name]()
    except Retried as error:
        result = type(error)
    waits = {0: True, 1: False, int(ExitCode.TRY_AGAIN): False}
    ends = {0: None, int(ExitCode.TRY_AGAIN): Retried}
    assert result is (waits if name == "complete" else ends).get(int(code), Failed)
