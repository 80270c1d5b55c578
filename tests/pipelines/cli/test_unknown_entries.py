"""An entry that this version of Penstock does not know is refused in words, by every command that reads the ledger."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from pipelines.delta.commits import read_commit
from pipelines.ledger.ledger import KEY, LedgerEntry
from resources.errors import EntryUnknown
from resources.settings.settings import Settings
from resources.stores.lake import Lake
from tests.pipelines.cli.broker_world import Make, World

Change = Callable[[dict[str, Any]], None]


def new_kind(entry: dict[str, Any]) -> None:
    """The entry has a kind of a later version."""
    entry["kind"] = "purge"


def new_field(entry: dict[str, Any]) -> None:
    """The entry has a field of a later version."""
    entry["keys"] = {"k1": "ab"}


def new_field_of_a_range(entry: dict[str, Any]) -> None:
    """A range of the entry has a field of a later version."""
    entry["ranges"][0]["erased"] = "AAE="


def new_field_of_a_choice(entry: dict[str, Any]) -> None:
    """A choice of the entry has a field of a later version."""
    choice = {"setting": "on_expired", "value": "skip", "partition": "0", "start": 0, "stop": 1, "by": "somebody"}
    entry["choices"] = [choice]


def new_field_of_the_topic(entry: dict[str, Any]) -> None:
    """The topic of the entry has a field of a later version."""
    entry["topic"]["tenant"] = "a"


def new_field_of_the_event_time(entry: dict[str, Any]) -> None:
    """The event time of the entry has a field of a later version."""
    entry["event_time"] = {"column": "timestamp", "lateness_ms": 0, "partitions": {}, "watermark_ms": 5}


def new_field_of_a_partition_in_the_event_time(entry: dict[str, Any]) -> None:
    """The event time of a partition has a field of a later version."""
    entry["event_time"] = {"column": "timestamp", "lateness_ms": 0, "partitions": {"0": {"max_ms": 5, "idle": True}}}


def new_field_of_a_last_message(entry: dict[str, Any]) -> None:
    """The last message of a partition has a field of a later version."""
    entry["last_messages"] = {"0": {"offset": 7, "digest": "ab", "epoch": 3}}


def new_field_of_written_rows(entry: dict[str, Any]) -> None:
    """The rows that the entry has written again have a field of a later version."""
    offsets = {"partition": {"broker": None, "partition": 0}, "start": 0, "stop": 1, "rack": "b"}
    entry["written"] = [{"offsets": offsets, "loaded_at_us": 5}]


def damaged(entry: dict[str, Any]) -> None:
    """The entry lacks a field."""
    del entry["sequence"]


CHANGES: Mapping[Change, str] = {
    new_kind: "purge",
    new_field: "keys",
    new_field_of_a_range: "erased",
    new_field_of_a_choice: "by",
    new_field_of_the_topic: "tenant",
    new_field_of_the_event_time: "watermark_ms",
    new_field_of_a_partition_in_the_event_time: "idle",
    new_field_of_a_last_message: "epoch",
    new_field_of_written_rows: "rack",
    damaged: "sequence",
}


def commit_file(world: World, version: int) -> Path:
    """The commit file of a version of the table `clicks`."""
    return Path(Lake.of(Settings.load(world.settings_file)).root) / f"main/clicks/_delta_log/{version:020d}.json"


def change_entry(file: Path, change: Change) -> str:
    """Change the entry of a commit, as if Penstock 99 had written it; returns the entry's text."""
    actions = [json.loads(line) for line in file.read_text().splitlines()]
    [info] = [action["commitInfo"] for action in actions if "commitInfo" in action]
    entry = json.loads(info[KEY]) | {"code": "99.0"}
    change(entry)
    info[KEY] = json.dumps(entry)
    file.write_text("".join(json.dumps(action) + "\n" for action in actions))
    return str(info[KEY])


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_an_entry_of_a_newer_version_is_refused_with_that_version_and_what_is_unknown(
    change: Change, make: Make
) -> None:  # fault E13
    text = change_entry(commit_file(make(), 1), change)
    with pytest.raises(EntryUnknown, match=rf"Penstock 99\.0 .*{CHANGES[change]}.*upgrade Penstock"):
        LedgerEntry.from_json(text)
    with pytest.raises(EntryUnknown, match=r"\(version 7 of the table\)"):
        read_commit(7, [{"commitInfo": {KEY: text}}])


@pytest.mark.parametrize(
    "command",
    [
        ["load"],
        ["status"],
        ["verify"],
        ["verify", "--deep"],
        ["history"],
        ["clean"],
        ["complete", "--through", "-1h"],
        ["rewind", "--version", "0"],
        ["replay", "--partition", "0", "--from", "0", "--to", "5"],
        ["erase", "--where", "partition = 0", "--yes"],
        ["erase", "--finish", "--yes"],
        ["rewrite"],
    ],
    ids=" ".join,
)
def test_every_command_says_that_a_newer_version_has_written_to_the_table(command: list[str], make: Make) -> None:
    # fault E13
    world = make()
    change_entry(commit_file(world, 1), new_kind)
    result = world.penstock(command[0], "clicks", *command[1:])
    assert result.exit_code, result.output
    assert "PS-416" in result.output
    assert "Penstock 99.0" in result.output
