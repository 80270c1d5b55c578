"""`penstock history`: a line per commit for people, each range for scripts."""

import json
from collections.abc import Callable

from click.testing import Result

Penstock = Callable[..., Result]


def test_a_history_is_a_line_per_commit(penstock: Penstock) -> None:
    lines = penstock("history", "clicks").stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["VERSION", "2", "1", "0"]
    assert "load" in lines[1]
    assert "CREATE TABLE" in lines[3]


def test_a_history_has_limits_and_is_json_for_scripts(penstock: Penstock) -> None:
    newest, before = json.loads(penstock("history", "clicks", "--limit", "2", "--json").stdout)
    assert (newest["version"], newest["rows"], before["version"], before["rows"]) == (2, 5, 1, 5)
    assert [(one["partition"], one["start"], one["stop"]) for one in newest["ranges"]] == [(0, 50, 80), (1, 0, 20)]
