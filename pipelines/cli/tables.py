"""`penstock verify` and `penstock clean`: the proof of tables, and their housekeeping."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from pipelines.cli.options import FiniteRange, GlobalOptions, Selection, selects_topics
from pipelines.cli.output import console, log_lines
from pipelines.cli.output.result import CommandResult, Errors, ends_of, prints_result
from resources.explanations.explanation import ExitCode
from resources.printed import printed
from resources.settings.settings import MAX_DAYS, Settings
from resources.table_names import topic_of

if TYPE_CHECKING:
    from pipelines.maintenance.housekeeping import TopicHousekeeping
    from pipelines.table.lake_table import LakeTable
    from pipelines.verify.verify import Proof


@click.command("verify")
@selects_topics
@click.option("--deep", is_flag=True, help="Also compare each row with the record that the brokers still hold.")
@click.option("--files", is_flag=True, help="Also read every page of every data file, and check it.")
@click.option("--tables", "together", is_flag=True, help="Also verify that each offset is in one table of its topic.")
@prints_result
def verify_command(
    options: GlobalOptions, selection: Selection, deep: bool, files: bool, together: bool
) -> CommandResult:
    """Prove that every committed offset is in its table exactly once.

    The command reads only the tables, and of each row only the columns that identify it. With --files it reads every
    page of every data file once, and names the files and columns whose bytes are damaged. If the settings name a state
    table of the topic, it is computed again from the table of the topic, and compared row by row. With --deep the
    command also reads the brokers again, as far back as they still hold the records of the tables.

    A topic with several tables, such as events and events/orders, has a proof for each table. With --tables the command
    verifies all of them, and that each offset of the topic is a row of one of them, or a gap.

    \b
    Examples:
      penstock verify --all
      penstock verify clicks --deep
      penstock verify clicks --files
      penstock verify clicks views --json
      penstock verify events --tables
    """
    settings = options.settings()
    proofs: list[tuple[LakeTable, Proof]] = []
    by_topic: dict[tuple[str | None, str], Sequence[LakeTable]] = {}
    errors = Errors()
    for name in selection.clusters(settings):
        with errors.caught(cluster=name):
            selected = selection.tables(settings, name)
            of_topics = _by_topic(selected) if together else {}
            by_topic |= of_topics
            tables = _with_others(selected, of_topics) if together else selected
            of_cluster = (_deep_proofs if deep else _proofs)(settings, name, tables, values=files)
            for table, (proof, warnings) in zip(tables, of_cluster, strict=True):
                proofs.append((table, proof))
                for warning in warnings:
                    log_lines.warning(warning, cluster=name, topic=proof.topic)
            if selection.every:
                _check_none_is_lost(settings, name, tables, errors)
    records = [{"cluster": table.where.cluster, **printed(proof)} for table, proof in proofs]
    for (table, _), record in zip(proofs, records, strict=True):
        add_state_proof(settings, table, record)
        with errors.caught(cluster=record["cluster"], topic=record["topic"]):
            _add_problems_between(by_topic.get((record["cluster"], record["topic"]), ()), record)
    has_problems = any(not record["proven"] and not record["errors"] for record in records)
    return CommandResult(
        records=records,
        show=console.proofs,
        ends=[*ends_of(records), *([ExitCode.NOT_PROVEN] if has_problems else [])],
        errors=errors.failures,
        traces=[proof.failure.trace for _, proof in proofs if proof.failure],
    )


def _check_none_is_lost(settings: Settings, cluster: str, tables: Sequence["LakeTable"], errors: Errors) -> None:
    """Add an error for each topic whose table was verified before, and is gone (fault E07)."""
    from pipelines.verify.last_proof import LastProofs
    from resources.errors import TableMissing
    from resources.stores.lake import Lake

    there, rules = {table.where.topic for table in tables}, settings.rules(cluster)
    for topic in LastProofs(Lake.of(settings), cluster).read():
        if topic not in there and rules.allows(topic):
            with errors.caught(cluster=cluster, topic=topic):
                raise TableMissing(
                    "the topic had a table when it was verified last, and has none now; if it was removed on purpose, "
                    "add the topic to `deny` in [topics]"
                )


def _by_topic(tables: Sequence["LakeTable"]) -> "Mapping[tuple[str | None, str], Sequence[LakeTable]]":
    """All tables of the topics of these tables, by cluster and topic."""
    from pipelines.verify.topic_tables import other_tables

    by_topic: dict[tuple[str | None, str], Sequence[LakeTable]] = {}
    for table in tables:
        topic = table.where.cluster, topic_of(str(table.where.topic))
        if len(by_topic.get(topic, ())) <= 1:
            by_topic[topic] = [table, *other_tables(table)]
    return by_topic


def _with_others(
    tables: Sequence["LakeTable"], by_topic: "Mapping[tuple[str | None, str], Sequence[LakeTable]]"
) -> "Sequence[LakeTable]":
    """The tables, and the other tables of their topics that are not among them."""
    by_name = {other.where.topic: other for of_topic in by_topic.values() for other in of_topic}
    by_name |= {table.where.topic: table for table in tables}
    return [by_name[name] for name in sorted(by_name, key=str)]


def _add_problems_between(tables: Sequence["LakeTable"], record: dict[str, Any]) -> None:
    """Add to the record of a topic's own table why an offset is not in exactly one of the tables of the topic."""
    if len(tables) <= 1 or record["errors"]:
        return
    from pipelines.verify.topic_tables import problems_between

    problems = list(problems_between(tables))
    record["problems"] = [*record["problems"], *problems]
    record["proven"] = record["proven"] and not problems


def add_state_proof(settings: Settings, table: "LakeTable", record: dict[str, Any]) -> None:
    """Verify the state table too, if the topic has one in the settings, and add the result to the topic's record."""
    topic = settings.options_of(record["topic"])
    if topic.state is None or record["errors"]:
        return
    from pipelines.state_tables.proof import prove_state

    proof = prove_state(table, topic)
    if proof.absent:
        log_lines.warning(proof.problems[0], cluster=table.where.cluster, topic=record["topic"])
        return
    record["state"] = printed(proof)
    record["problems"] = [*record["problems"], *proof.problems]
    record["proven"] = record["proven"] and proof.proven
    record["errors"] = [printed(proof.failure)] if proof.failure else []


def _proofs(
    settings: Settings, cluster: str, tables: Sequence["LakeTable"], *, values: bool
) -> "Iterator[tuple[Proof, Sequence[str]]]":
    """The proof of each table, with warnings."""
    from pipelines.verify.last_proof import LastProofs
    from pipelines.verify.verify import verify
    from resources.stores.lake import Lake

    last_proofs = LastProofs(Lake.of(settings), cluster)
    return last_proofs.prove_all(tables, partial(verify, values=values))


def _deep_proofs(
    settings: Settings, cluster: str, tables: Sequence["LakeTable"], *, values: bool
) -> "Iterator[tuple[Proof, Sequence[str]]]":
    """The proof of each table against the brokers, with warnings."""
    from pipelines.cli.output.progress import progress
    from pipelines.comparison.deep_verify import deep_verify
    from pipelines.verify.last_proof import LastProofs
    from resources.kafka import open_cluster, open_schema_registry
    from resources.stores.lake import Lake

    last_proofs = LastProofs(Lake.of(settings), cluster)
    with open_cluster(settings, cluster) as connected, progress() as on_progress:
        for table in tables:
            topic = str(table.where.topic)
            check = partial(
                deep_verify,
                cluster=connected,
                format_=settings.format_of(topic),
                open_registry=partial(open_schema_registry, settings),
                on_progress=on_progress(topic),
                values=values,
            )
            yield last_proofs.prove(table, check, deep=True)


@click.command("clean")
@selects_topics
@click.option(
    "--delete", is_flag=True, help="Delete, merge and retire files. Without it, only show what would be done."
)
@click.option(
    "--keep-days",
    type=FiniteRange(0, MAX_DAYS, min_open=True),
    help="Overrides housekeeping.keep_days of the settings.",
)
@prints_result
def clean_command(options: GlobalOptions, selection: Selection, delete: bool, keep_days: float | None) -> CommandResult:
    """Delete files that no table needs, and merge small files.

    The command deletes files that no commit names (left by failed or killed runs) and files that were removed from a
    table, if they are older than housekeeping.keep_days. Choose more days than the longest run takes, and at least as
    many as you may want to go back with `penstock rewind`. With --delete it also merges small files into large ones and
    writes a checkpoint of the Delta log. Cursors and history do not change. It does the same for the state tables of
    the topics. Files with rows that `penstock erase` took out, or with values that `penstock rewrite` took out, are
    deleted after housekeeping.erase_days. If the section of a topic has its own keep_days, files whose rows are all
    older are taken out of its table. Loads and updates can run at the same time.

    \b
    Examples:
      penstock clean --all
      penstock clean clicks --delete
      penstock clean clicks --delete --keep-days 30
    """
    from pipelines.maintenance.housekeeping import TopicHousekeeping

    settings = options.settings()
    keep = timedelta(days=keep_days or settings.housekeeping.keep_days)
    records, errors = [], Errors()
    for cluster in selection.clusters(settings):
        with errors.caught(cluster=cluster):
            for table in selection.tables(settings, cluster):
                done = TopicHousekeeping()
                with errors.caught(cluster=cluster, topic=table.where.topic):
                    done.run(table, settings, keep=keep, dry_run=not delete)
                if done.cleaned is not None:
                    records.append({"cluster": cluster, "topic": table.where.topic, **_printed(done)})
    return CommandResult(records=records, show=partial(console.cleanings, deleted=delete), errors=errors.failures)


def _printed(done: "TopicHousekeeping") -> dict[str, Any]:
    """The results of all steps; those of a table are the result itself."""
    return {
        **printed(done.cleaned),
        "state": printed(done.state),
        "erased": printed(done.erased),
        "retired": printed(done.retired),
    }
