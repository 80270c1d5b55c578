"""The settings on the page about Spark can be loaded, and its numbers are those of the code."""

import re
from pathlib import Path

import pytest

from pipelines.load import planned
from resources.machines import spark, spark_job
from resources.settings.settings import MIB, Caps, Settings
from tests.docs.pages import ROOT, run_blocks
from tests.fuzz.test_memory import TIMES
from tests.spark.sites import NAMES

PAGE = (ROOT / "docs" / "spark.md").read_text(encoding="utf-8")
FRAGMENTS = [block.text for block in run_blocks(ROOT / "docs" / "spark.md", "toml")]
OTHER_SETTINGS = """lake = "lake"
[clusters.main]
bootstrap = "kafka.example:9092"
"""


@pytest.mark.parametrize("fragment", FRAGMENTS)
def test_every_example_is_a_valid_part_of_a_settings_file(fragment: str, tmp_path: Path) -> None:
    file = tmp_path / "penstock.toml"
    file.write_text(OTHER_SETTINGS + fragment)
    spark_settings = Settings.load(file).spark
    assert {"master", "remote"} & spark_settings.keys()
    assert all(key.startswith("spark.") for key in spark_settings.keys() - {"master", "remote"})


@pytest.mark.parametrize("master", ["local[", "spark://", "yarn", "k8s://", "sc://"])
def test_every_kind_of_master_has_an_example(master: str) -> None:
    assert any(f'= "{master}' in fragment for fragment in FRAGMENTS)


def test_the_page_marks_exactly_the_sites_that_tests_use_as_tested() -> None:
    tested = re.findall(r"^\| (.*?) \| .* \| yes", PAGE, re.MULTILINE)
    assert tested == ["this machine", "a standalone cluster", "a Connect server"]
    assert re.findall(r"^\| (.*?) \| .* \| only by `make thorough`", PAGE, re.MULTILINE) == ["YARN"]
    assert {name.partition(", ")[2] for name in NAMES} == {"local", "standalone"}
    assert {name.partition(", ")[0] for name in NAMES} == {"classic", "Connect"}


def test_the_numbers_of_the_page_are_those_of_the_code() -> None:
    caps = Caps()
    max_bytes = 225e6 + TIMES * (caps.max_fetch_bytes + caps.max_decompressed_bytes)
    for sentence in (
        f"`{spark.DEFAULT_MASTER}`, the default",
        f"no task has run for {spark_job._STARVED_S:.0f} seconds",
        f"A step of a load has {planned._STEP_SLICES} full slices",
        f"a load keeps up to {planned._STEP_SLICES * (1 + planned._STEPS_AHEAD)} of them busy",
        "more than four full slices" if caps.driver_slices == 4 else "another default",
        f"{caps.max_fetch_bytes // MIB} and {caps.max_decompressed_bytes // MIB} MiB",
        f"| {TIMES} MB more |",
        f"takes {max_bytes / 1e9:.1f} GB",
    ):
        assert sentence in PAGE
