"""The jars of a broker: downloaded once, and a folder that is not whole never passes for one."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.brokers import jars


class Ivy:
    """Stands in for Ivy: makes two jars, and counts how often it was asked."""

    def __init__(self) -> None:
        self.asked = 0

    def retrieve(self, folder: Path, _ivy_home: Path) -> None:
        """Make them."""
        self.asked += 1
        (folder / "a.jar").write_bytes(b"whole")
        (folder / "b.jar").write_bytes(b"whole")


@pytest.fixture
def ivy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ivy:
    """An empty cache, and no network."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    ivy = Ivy()
    monkeypatch.setattr(jars, "_retrieve", ivy.retrieve)
    return ivy


def folder_of(classpath: str) -> Path:
    """Where the jars are."""
    assert classpath.endswith("/*")
    return Path(classpath).parent


def names(folder: Path) -> list[str]:
    """The jars that are there."""
    return sorted(jar.name for jar in folder.glob("*.jar"))


def test_what_is_there_is_not_downloaded_again(ivy: Ivy) -> None:
    assert jars.classpath("3.9.1") == jars.classpath("3.9.1")
    assert ivy.asked == 1
    assert jars.classpath("0.8.2.2") != jars.classpath("3.9.1")
    assert ivy.asked == 2


def test_who_comes_at_the_same_time_waits(ivy: Ivy) -> None:
    with ThreadPoolExecutor(8) as pool:
        classpaths = set(pool.map(jars.classpath, ["3.9.1"] * 8))
    assert len(classpaths) == ivy.asked == 1


@pytest.mark.parametrize("spoil", [Path.unlink, lambda jar: jar.write_bytes(b"hal")], ids=["missing", "cut short"])
def test_a_folder_that_lost_something_is_made_anew(spoil: Callable[[Path], None], ivy: Ivy) -> None:
    folder = folder_of(jars.classpath("3.9.1"))
    spoil(folder / "b.jar")
    assert folder_of(jars.classpath("3.9.1")) == folder
    assert (folder / "b.jar").read_bytes() == b"whole"
    assert ivy.asked == 2


def test_a_download_that_broke_off_leaves_nothing_that_counts(ivy: Ivy, monkeypatch: pytest.MonkeyPatch) -> None:
    def break_off(folder: Path, _ivy_home: Path) -> None:
        (folder / "left over.jar").touch()
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(jars, "_retrieve", break_off)
        with pytest.raises(KeyboardInterrupt):
            jars.classpath("3.9.1")
    assert names(folder_of(jars.classpath("3.9.1"))) == ["a.jar", "b.jar"]


def test_what_ivy_says_when_it_fails_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(jars, "IVY_FILE", "not XML")
    with pytest.raises(jars.JarsNotFound, match=r"(?s)The end of what Ivy said:\n.*ivy\.xml"):
        jars.classpath("3.9.1")
