"""`penstock schema` shows the columns of a typed table, and those that the next load adds."""

import json
from collections.abc import Callable

from click.testing import Result

Penstock = Callable[..., Result]


def test_a_raw_table_has_no_columns_for_fields(penstock: Penstock) -> None:
    result = penstock("schema", "clicks")
    assert (result.exit_code, result.stdout.splitlines()) == (0, ["NAME  TYPE  FIELD  NEW  COMMENT"])


def test_the_columns_of_a_topic_without_a_table_are_new(penstock: Penstock) -> None:
    result = penstock("schema", "notes")
    assert result.exit_code == 0, result.output
    assert [line.split() for line in result.stdout.splitlines()[1:]] == [["value", "string", "value", "new"]]


def test_the_schema_is_json_for_scripts(penstock: Penstock) -> None:
    [shown] = json.loads(penstock("schema", "notes", "--json").stdout)["results"]
    [column] = shown["columns"]
    assert (shown["topic"], shown["format"], shown["version"], shown["warnings"]) == ("notes", "text", None, [])
    assert column == {"name": "value", "type": "string", "field": "value", "comment": "", "is_new": True}
