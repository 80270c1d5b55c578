"""Mistakes that no test near the code noticed once, such as a rule that is left out as a whole.

`mutants_of` makes none of them. Each stays in this list with the test that notices it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import CodeType
from typing import Self

from tests.mutation.mutants import Mutant


@dataclass(frozen=True, slots=True, kw_only=True)
class Mistake(Mutant):
    """Another text at one place of a module.

    Args:
        before: the text, which the module has once.
        after: the text in its place, with as many lines.
        test: the name of the test that notices it.
    """

    before: str
    after: str
    test: str

    @classmethod
    def of(cls, root: Path, file: str, before: str, after: str, *, test: str, at_import: bool = False) -> Self:
        """A mistake in the module `root / file`."""
        text = (root / file).read_text()
        assert text.count(before) == 1, f"{file} has this text {text.count(before)} times: {before}"
        assert before.count("\n") == after.count("\n")
        first = text.partition(before)[0].count("\n") + 1
        return cls(
            file=file,
            lines=(first, first + before.count("\n")),
            at_import=at_import,
            change=f"{before.strip()} -> {after.strip()}",
            before=before,
            after=after,
            test=test,
        )

    def compiled(self, root: Path) -> CodeType:
        """See Mutant."""
        path = root / self.file
        return compile(path.read_text().replace(self.before, self.after), str(path), "exec")


def mistakes(root: Path) -> Sequence[Mistake]:
    """All of them, in modules of this tree."""
    reader, pipelines = "tests/kafka_io/reader", "tests/pipelines"
    return (
        # Answers that wait take no room.
        Mistake.of(
            root,
            "kafka_io/reader/first_fetches.py",
            'fetch_bytes - sum(len(answer.records or b"") for answer in self._answers.values())',
            "fetch_bytes",
            test=f"{reader}/test_first_fetches.py::test_answers_that_wait_leave_less_room_for_the_next_request",
        ),
        # A partition that only its leader can give is asked for together with others.
        Mistake.of(
            root,
            "kafka_io/reader/first_fetches.py",
            "self._metadata.leader_only(planned.topic, partition.partition)",
            "False",
            test=f"{reader}/test_first_fetches.py::"
            "test_a_partition_whose_replica_could_not_be_read_is_read_alone_from_its_leader",
        ),
        # The log of a table has a hole, at its end or behind what was read before.
        Mistake.of(
            root,
            "pipelines/delta/delta_log_segment.py",
            "versions != list(range(versions[0], versions[0] + len(versions))) or",
            "",
            test=f"{pipelines}/delta/test_log_segment.py::test_a_hole_between_newer_entries_is_left_to_deltalake",
        ),
        Mistake.of(
            root,
            "pipelines/delta/delta_log_segment.py",
            "versions != list(range(newest + 1, newest + 1 + len(versions)))",
            "False",
            test=f"{pipelines}/delta/test_log_segment.py::test_a_hole_between_newer_entries_is_left_to_deltalake",
        ),
        # A table has features that ask something of each commit, or rules for the values of columns.
        Mistake.of(
            root,
            "pipelines/delta/append.py",
            "_KNOWN_FEATURES.issuperset(definition.writer_features)",
            "True",
            test=f"{pipelines}/delta/test_append.py::test_a_table_with_rules_for_writers_is_left_to_deltalake",
        ),
        Mistake.of(
            root,
            "pipelines/delta/foreign_features.py",
            "'\"delta.invariants\"':",
            "'\"no.invariants\"':",
            test=f"{pipelines}/delta/test_foreign_features.py::test_a_table_with_a_rule_for_a_column_is_refused",
            at_import=True,
        ),
        # A new incarnation of a topic leaves the cursor out that the old one had too.
        Mistake.of(
            root,
            "pipelines/delta/writes.py",
            "if snapshot.entry and snapshot.entry.topic == entry.topic else",
            "if snapshot.entry else",
            test=f"{pipelines}/delta/test_table_state.py::"
            "test_a_new_incarnation_sets_its_cursors_also_where_the_former_one_ended",
        ),
        # Steps that were announced are fetched on, though others were planned in their place.
        Mistake.of(
            root,
            "pipelines/load/planned.py",
            "run.fetcher.runner.abandon(reconciled.topic.name)",
            "pass",
            test=f"{pipelines}/load/test_run_target.py::test_steps_are_planned_again_after_the_commit_of_another_run",
        ),
        # Rows that were decoded again are committed, though others are gone.
        Mistake.of(
            root,
            "pipelines/rewrites/redecode.py",
            "if rows != committed.rows:",
            "if False:",
            test=f"{pipelines}/rewrites/test_redecode.py::"
            "test_rows_that_are_gone_are_noticed_before_the_rows_that_were_decoded_again_are_committed",
        ),
        # Files that a rewind brought back are deleted.
        Mistake.of(
            root,
            "pipelines/maintenance/clean.py",
            "unneeded = unneeded.without(needed)",
            "pass",
            test=f"{pipelines}/maintenance/test_clean.py::"
            "test_a_clean_spares_what_a_rewind_brought_back_even_if_its_announcement_lands_on_top",
        ),
        # An entry that ends where rows are lost proves something of the time before.
        Mistake.of(
            root,
            "pipelines/plan/valid_through.py",
            "(0, 0))[1] < max(1, start)",
            "(0, 0))[1] <= max(1, start)",
            test=f"{pipelines}/plan/test_valid_through.py::"
            "test_an_entry_that_ends_where_rows_are_lost_proves_nothing_of_the_time_before",
        ),
        # A state table takes the short way, though rows were replaced.
        Mistake.of(
            root,
            "pipelines/state_tables/update.py",
            "difference.removed or difference.replaced:",
            "difference.removed:",
            test=f"{pipelines}/state_tables/test_only_appends.py::test_only_rows_after_the_covered_ones_are_appended",
        ),
    )
