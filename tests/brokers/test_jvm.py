"""The command line of a broker's JVM."""

from pathlib import Path

import pytest

from tests.brokers import jvm


def test_a_jvm_writes_an_archive_of_its_classes_only_if_its_version_has_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "brokers").mkdir()
    monkeypatch.setattr(jvm, "cache_dir", lambda: tmp_path)
    monkeypatch.setattr(jvm, "classpath", lambda version: f"/jars/{version}/*")
    written = tmp_path / "classes.jsa"
    assert jvm.writes_archive(jvm.command("3.9.1", "kafka.Kafka", archive=written))
    written.write_text("classes")
    jvm.keep_archive("3.9.1", written)
    [kept] = (tmp_path / "brokers").iterdir()
    command = jvm.command("3.9.1", "kafka.Kafka", archive=written)
    assert f"-XX:SharedArchiveFile={kept}" in command
    assert not jvm.writes_archive(command)
    assert jvm.writes_archive(jvm.command("4.1.0", "kafka.Kafka", archive=written))
