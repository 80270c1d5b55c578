"""What the pages promise about versions is what the changelog, the package and the tests say."""

import re
import tomllib

from tests.docs.pages import ROOT
from tests.stored_lake import RELEASES

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
VERSIONS = (ROOT / "docs" / "versioning.md").read_text(encoding="utf-8")
POLICY = (ROOT / ".github" / "SECURITY.md").read_text(encoding="utf-8")
PREAMBLE = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").partition("## [Unreleased]")[0]


def words(text: str) -> str:
    """The text with single spaces, as line breaks may be anywhere."""
    return " ".join(text.split())


def test_the_newest_minor_version_gets_fixes() -> None:
    minor = ".".join(PROJECT["version"].split(".")[:2])
    assert re.findall(r"^\| ([\d.]+) and the main branch \| yes \|$", POLICY, re.MULTILINE) == [minor]


def test_the_promise_about_tables_is_that_of_the_changelog() -> None:
    promise = "ach version loads, verifies and continues the tables of all earlier versions"
    assert promise in words(PREAMBLE)
    assert promise in words(VERSIONS)
    assert "may rename Python names of `kafka_io`" in words(PREAMBLE)
    assert "| a Python name of `kafka_io` | minor version |" in VERSIONS


def test_a_lake_of_the_oldest_version_that_the_page_names_is_kept() -> None:
    (oldest,) = re.findall(r"version (\d+\.\d+\.\d+) wrote", words(VERSIONS))
    lakes = {file.name for file in (ROOT / "tests" / "golden").glob("lake_*.tar.xz")}
    assert lakes == {f"lake_{release}.tar.xz" for release in RELEASES}
    assert oldest == RELEASES[-1]


def test_the_beta_is_a_beta_in_the_package_too() -> None:
    assert "It is beta: the first number is 0." in VERSIONS
    assert "Development Status :: 4 - Beta" in PROJECT["classifiers"]
    assert PROJECT["version"].startswith("0.")
