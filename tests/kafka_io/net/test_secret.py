"""References are read as secrets, and secrets are never shown."""

import copy
import json
import pickle
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from kafka_io.errors import SecretMissing
from kafka_io.net.secret import HOW_TO_NAME_ONE, Secret, SecretReference


@pytest.mark.parametrize(
    "text", ["env:KAFKA_PASSWORD", "env:_a1", "file:/run/secrets/kafka", "file:/with:colon", "command:vault read -f x"]
)
def test_a_reference_is_written_as_its_text(text: str) -> None:
    assert str(SecretReference.parse(text)) == text


def test_a_reference_survives_json() -> None:
    reference = SecretReference.parse("file:/run/secrets/kafka")
    assert SecretReference(**json.loads(json.dumps(asdict(reference)))) == reference


@pytest.mark.parametrize(
    "text",
    [
        *("canary", "", ":", "env:", "env", "env:canary!", "env:1canary", "file:", "file:canary", "file"),
        *("http://canary", "command:", "command:./canary", "command:bin/canary", "command:'canary", "command:''"),
        "command:pass canary\nlogged: a line",
    ],
)
def test_an_error_does_not_repeat_a_text_that_may_be_a_secret(text: str) -> None:  # fault X01
    with pytest.raises(ValueError, match="env:NAME") as raised:
        SecretReference.parse(text)
    assert str(raised.value) == HOW_TO_NAME_ONE


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(ValueError, match="env:NAME"):
        SecretReference("http", "/canary")


def test_a_variable_is_read_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    reference = SecretReference("env", "PENSTOCK_TEST")
    for value in ("one", "two\n"):
        monkeypatch.setenv("PENSTOCK_TEST", value)
        assert reference.read().reveal() == value.encode()


def test_a_file_is_read_each_time_without_its_last_line_ends(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    reference = SecretReference("file", str(file))
    for content, secret in ((b"one", b"one"), (b"two\n", b"two"), (b"three \r\n\n", b"three "), (b"\xff\0", b"\xff\0")):
        file.write_bytes(content)
        assert reference.read().reveal() == secret


def test_an_error_names_a_reference_to_a_missing_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PENSTOCK_TEST", raising=False)
    with pytest.raises(SecretMissing, match="env:PENSTOCK_TEST is not in the environment of this process") as raised:
        SecretReference("env", "PENSTOCK_TEST").read()
    assert not raised.value.retriable
    with pytest.raises(SecretMissing, match=f"file:{tmp_path}/none cannot be read: no such file"):
        SecretReference("file", f"{tmp_path}/none").read()
    with pytest.raises(SecretMissing, match=r"cannot be read: .*directory"):
        SecretReference("file", str(tmp_path)).read()
    with pytest.raises(SecretMissing, match="cannot be read: this text cannot be a path"):
        SecretReference("file", "/nul\0").read()


def test_an_empty_secret_counts_as_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "secret").write_text("\n")
    monkeypatch.setenv("PENSTOCK_TEST", "")
    for reference in (SecretReference("file", str(tmp_path / "secret")), SecretReference("env", "PENSTOCK_TEST")):
        with pytest.raises(SecretMissing, match="is empty"):
            reference.read()


def test_a_file_without_end_is_read_only_up_to_the_limit() -> None:
    with pytest.raises(SecretMissing, match="larger than 65536 bytes"):
        SecretReference("file", "/dev/zero").read()


def test_a_secret_is_printed_as_stars() -> None:  # fault X01
    secret = Secret(b"canary")
    assert {str(secret), repr(secret), f"{secret}", f"{secret!r:>3}", repr([secret])} == {"***", "[***]"}


@pytest.mark.parametrize("travel", [pickle.dumps, copy.copy, copy.deepcopy])
def test_a_secret_cannot_be_pickled_or_copied(travel: Any) -> None:  # faults X01, X02
    with pytest.raises(TypeError, match="pickle its reference"):
        travel(Secret(b"canary"))


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("is it canary?", "is it ***?"),
        ("a\nFATAL \x1b[31m", "a?FATAL ?[31m"),
        ("x" * 300, "x" * 200),
        ("x" * 196 + "canary", "x" * 196 + "***"),
        ("", ""),
    ],
)
def test_a_masked_text_is_short_and_printable_and_lacks_the_secret(text: str, masked: str) -> None:  # faults X01, X05
    assert Secret(b"canary").masked(text) == masked


def test_without_a_secret_a_text_is_only_made_short_and_printable() -> None:  # Kerberos has no secret here
    assert Secret(b"").masked("a\nb" + "x" * 1000) == "a?b" + "x" * 197
