"""The output for people: uploads that were never completed are named."""

from dataclasses import asdict

import pytest

from pipelines.cli.output.console import cleanings, erased_files
from pipelines.maintenance.clean import CleanResult
from pipelines.maintenance.erased_files import ErasedFiles
from resources.printed import printed


def cleaned(topic: str, *, uploads: int = 0, unknown: str = "") -> dict[str, object]:
    """A result of `penstock clean`."""
    result = CleanResult(table=f"s3://lake/main/{topic}", uploads=uploads, uploads_unknown=unknown)
    return {**asdict(result), "topic": topic, "state": None, "erased": [], "retired": None}


@pytest.mark.parametrize(("deleted", "verb"), [(True, "were aborted"), (False, "would be aborted")])
def test_uploads_that_were_never_completed_are_named(
    deleted: bool, verb: str, capsys: pytest.CaptureFixture[str]
) -> None:  # fault L23
    cleanings([cleaned("clicks", uploads=3), cleaned("views")], deleted=deleted)
    lines = capsys.readouterr().out.splitlines()
    assert f"clicks: 3 uploads of files that were never completed {verb}" in lines
    assert not any("views: " in line for line in lines)
    assert ("nothing was changed; give --delete to delete these files" in lines) is not deleted


def test_the_reason_why_uploads_were_not_looked_for_is_given_once(capsys: pytest.CaptureFixture[str]) -> None:
    cleanings([cleaned("clicks", unknown="it rains"), cleaned("views", unknown="it rains")], deleted=True)
    output = capsys.readouterr().out
    assert output.count("uploads that were never completed were not looked for: it rains") == 1


@pytest.mark.parametrize(("deleted", "verb"), [(True, "deleted from"), (False, "would be deleted from")])
def test_files_that_an_erasure_made_outdated_are_counted_and_those_beside_the_table_are_named(
    deleted: bool, verb: str, capsys: pytest.CaptureFixture[str]
) -> None:  # fault Y09
    done = ErasedFiles(table="lake/clicks", deleted=("a", "b"), beside=("_quarantine/c",), waiting=2, busy=True)
    erased_files("clicks", [printed(done)], deleted=deleted)
    shown = capsys.readouterr()
    assert shown.out.splitlines() == [
        f"clicks: 3 files from before an erasure or a rewrite {verb} lake/clicks",
        "clicks: among them _quarantine/c, which has copies of bytes",
        "clicks: the files of 2 erasures or rewrites wait for housekeeping.erase_days or for `penstock state`",
    ]
    assert "another writer committed first" in shown.err


@pytest.mark.parametrize("part", [{"deleted": ("a",)}, {"beside": ("_quarantine/c",)}])
def test_a_dry_run_that_only_finds_files_of_an_erasure_says_how_they_are_deleted(
    part: dict[str, tuple[str, ...]], capsys: pytest.CaptureFixture[str]
) -> None:
    erased = [printed(ErasedFiles(table="lake/clicks", **part))]  # type: ignore[arg-type]
    cleanings([{**cleaned("clicks"), "erased": erased}], deleted=False)
    assert "nothing was changed; give --delete to delete these files" in capsys.readouterr().out
