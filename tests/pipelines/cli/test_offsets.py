"""`penstock offsets`: what it prints, and wrong use in one sentence."""

import json
from collections.abc import Callable

import pytest
from click.testing import Result

Penstock = Callable[..., Result]


def test_cursors_are_shown_as_lines_csv_or_json(penstock: Penstock) -> None:
    lines = penstock("offsets", "export", "clicks").stdout.splitlines()
    assert [line.split() for line in lines[1:]] == [["main", "clicks", "0-0", "80"], ["main", "clicks", "0-1", "20"]]
    assert penstock("offsets", "export", "--all", "--csv").stdout == "clicks,0-0,80\nclicks,0-1,20\n"
    assert json.loads(penstock("offsets", "export", "clicks", "--json").stdout)["results"] == [
        {"cluster": "main", "topic": "clicks", "broker": 0, "partition": number, "offset": offset}
        for number, offset in ((0, 80), (1, 20))
    ]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("export",), 2, "give topics, or --all"),
        (("export", "clicks", "--all"), 2, "not both"),
        (("export", "clicks", "--csv", "--json"), 2, "give --csv or --json, not both"),
        (("export", "clicks", "--group", "lake"), 2, "--group and --storage need --write"),
        (("export", "clicks", "--write"), 2, "give the group with --group, or set clusters.main.mirror_group"),
        (("export", "click"), 2, "the topic 'click' has no table; did you mean 'clicks'?"),
        (("import", "clicks"), 2, "Missing option '--from'"),
        (("import", "--from", "group:lake"), 2, "give topics"),
        (
            ("import", "clicks", "--from", "lake"),
            2,
            "'lake' is not a source of offsets; give one of group:..., zookeeper:...",
        ),
    ],
)
def test_wrong_use_is_one_sentence(arguments: tuple[str, ...], code: int, message: str, penstock: Penstock) -> None:
    result = penstock("offsets", *arguments)
    assert result.exit_code == code
    assert message in result.stderr
