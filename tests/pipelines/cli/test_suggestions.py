"""A name that does not exist is wrong use, and the message has the name that was probably meant."""

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from pipelines.cli.main import main
from resources.explanations.explanation import ExitCode
from resources.suggestion import did_you_mean, known_names

SETTINGS = """
lake = "lake"
[clusters.main]
bootstrap = "127.0.0.1:1"
[registries.schemas]
url = "http://127.0.0.1:1"
"""


def message_of(folder: Path, *words: str, settings: str = SETTINGS) -> str:
    """The message about wrong use of a command, on one line."""
    file = folder / "penstock.toml"
    file.write_text(settings)
    result = CliRunner().invoke(main, ["--settings", str(file), *words])
    assert result.exit_code == ExitCode.WRONG_USE, result.output
    return " ".join(result.stderr.split())


@pytest.mark.parametrize(
    ("words", "suggestion"),
    [
        (("staus",), "'status'"),
        (("offsets", "exprt"), "'export'"),
        (("config", "chek"), "'check'"),
        (("load", "--al"), "'--all'"),
        (("status", "--clster", "main"), "'--cluster'"),
        (("--debgu", "status"), "'--debug'"),
        (("status", "--cluster", "mian"), "there is no cluster 'mian' in the settings; did you mean 'main'?"),
        (("load", "clicks", "--cluster", "Main"), "there is no cluster 'Main' in the settings; did you mean 'main'?"),
        (("status", "--cluster", "xyz"), "there is no cluster 'xyz' in the settings; the clusters are: main"),
        (("publish", "a", "-", "--registry", "shemas"), "the settings; did you mean 'schemas'?"),
        (("publish", "a", "-", "--registry", "xyz"), "the settings; the registries are: schemas"),
        (("load", "clicks", "--on-expired", "skp"), "'skp' is not one of 'fail', 'skip'"),
    ],
)
def test_a_word_of_the_command_line(words: tuple[str, ...], suggestion: str, tmp_path: Path) -> None:
    assert suggestion in message_of(tmp_path, *words)


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("lakee = 1", "lake"),
        ("[clusters.main]\nbootstap = 1", "bootstrap"),
        ("[clusters.main.secrity]\ntls = true", "security"),
        ("[clusters.main.security]\ntsl = true", "tls"),
        ("[clusters.main.security.sasl]\nmechanisn = 1", "mechanism"),  # which is missing then
        ('[clusters.main.security.sasl]\nmechanism = "PLAIN"\nusernme = 1', "username"),
        ("[topics]\nalow = 1", "allow"),
        ("[topics.clicks]\nfromat = 1", "format"),
        ("[topics.clicks.state]\nkye = 1", "key"),
        ("[registries.main]\nulr = 1", "url"),
        ("[housekeeping]\nkeep_day = 1", "keep_days"),
        ("[caps]\natempts = 1", "attempts"),
        ("[metrics]\npush_ulr = 1", "push_url"),
        ("[lineage]\nulr = 1", "url"),
        ("[cap]\nattempts = 1", "caps"),
    ],
)
def test_a_key_of_the_settings(wrong: str, right: str, tmp_path: Path) -> None:
    lake = "" if right == "lake" else 'lake = "lake"'
    cluster = "" if wrong.startswith("[clusters") else '[clusters.main]\nbootstrap = "127.0.0.1:1"'
    message = message_of(tmp_path, "status", settings=f"{lake}\n{wrong}\n{cluster}\n")
    assert f"did you mean {right!r}?" in message


@pytest.mark.parametrize(
    "words",
    [
        ("complete", "click", "--through", "-1h"),
        ("redecode", "click"),
        ("schema", "click"),
        ("state", "click"),
        ("history", "CLICKS"),
    ],
)
def test_a_topic_of_the_lake(words: tuple[str, ...], penstock: Callable[..., Result]) -> None:
    result = penstock(*words)
    assert (result.exit_code, "has no table; did you mean 'clicks'?" in " ".join(result.stderr.split())) == (2, True)


def test_a_suggestion_is_close_in_any_case_and_a_list_replaces_it() -> None:
    assert did_you_mean("VIEWS", ["clicks", "Views"]) == "; did you mean 'Views'?"
    assert did_you_mean("orders", ["clicks", "views"]) == ""
    assert known_names("clusters", "a", ["main", "b-main"]) == "; the clusters are: b-main, main"
    assert known_names("registries", "a", []) == "; the registries are: none"
