"""The jars of a broker are downloaded once, and an incomplete folder is never used."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.brokers import jars


class Ivy:
    """A fake of Ivy: writes two jars and counts its calls."""

    def __init__(self) -> None:
        self.calls = 0

    def retrieve(self, folder: Path, _types: str, _ivy_home: Path) -> None:
        """Write the jars."""
        self.calls += 1
        (folder / "a.jar").write_bytes(b"complete")
        (folder / "b.jar").write_bytes(b"complete")


@pytest.fixture
def ivy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ivy:
    """The fake, an empty cache, and no network."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    ivy = Ivy()
    monkeypatch.setattr(jars, "_retrieve", ivy.retrieve)
    return ivy


def folder_of(classpath: str) -> Path:
    """The folder of a class path."""
    assert classpath.endswith("/*")
    return Path(classpath).parent


def names(folder: Path) -> list[str]:
    """The names of the jars in a folder."""
    return sorted(jar.name for jar in folder.glob("*.jar"))


def test_cached_jars_are_not_downloaded_again(ivy: Ivy) -> None:
    assert jars.classpath("3.9.1") == jars.classpath("3.9.1")
    assert ivy.calls == 1
    assert jars.classpath("0.8.2.2") != jars.classpath("3.9.1")
    assert ivy.calls == 2


def test_a_second_process_waits_for_the_download(ivy: Ivy) -> None:
    with ThreadPoolExecutor(8) as pool:
        classpaths = set(pool.map(jars.classpath, ["3.9.1"] * 8))
    assert len(classpaths) == ivy.calls == 1


@pytest.mark.parametrize("damage", [Path.unlink, lambda jar: jar.write_bytes(b"comp")], ids=["missing", "cut short"])
def test_a_folder_with_a_missing_or_truncated_jar_is_downloaded_again(damage: Callable[[Path], None], ivy: Ivy) -> None:
    folder = folder_of(jars.classpath("3.9.1"))
    damage(folder / "b.jar")
    assert folder_of(jars.classpath("3.9.1")) == folder
    assert (folder / "b.jar").read_bytes() == b"complete"
    assert ivy.calls == 2


def test_an_interrupted_download_leaves_no_cached_jars(ivy: Ivy, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted_retrieve(folder: Path, _types: str, _ivy_home: Path) -> None:
        (folder / "partial.jar").touch()
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(jars, "_retrieve", interrupted_retrieve)
        with pytest.raises(KeyboardInterrupt):
            jars.classpath("3.9.1")
    assert names(folder_of(jars.classpath("3.9.1"))) == ["a.jar", "b.jar"]


def test_an_error_of_ivy_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(jars, "IVY_FILE", "not XML")
    with pytest.raises(jars.JarsNotFound, match=r"(?s)Ivy failed. The end of its log:\n.*ivy\.xml"):
        jars.classpath("3.9.1")
