"""The changelog has the form of keepachangelog.com, and its newest version is the version of the package."""

import re
import tomllib

from tests.docs.pages import ROOT

CHANGELOG = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
KINDS = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


def releases() -> list[tuple[str, str]]:
    """Version and date of each release, newest first."""
    return re.findall(r"^## \[(\d+\.\d+\.\d+)\] - (\d{4}-\d\d-\d\d)$", CHANGELOG, re.MULTILINE)


def test_the_newest_release_is_the_version_of_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert releases()[0][0] == project["version"]


def test_unreleased_changes_come_before_the_releases() -> None:
    headings = re.findall(r"^## (.*)$", CHANGELOG, re.MULTILINE)
    assert headings == ["[Unreleased]", *(f"[{version}] - {date}" for version, date in releases())]


def test_releases_are_sorted() -> None:
    numbers = [tuple(map(int, version.split("."))) for version, _ in releases()]
    assert numbers == sorted(numbers, reverse=True)
    assert [date for _, date in releases()] == sorted((date for _, date in releases()), reverse=True)


def test_every_change_has_a_known_kind() -> None:
    assert set(re.findall(r"^### (.*)$", CHANGELOG, re.MULTILINE)) <= KINDS
