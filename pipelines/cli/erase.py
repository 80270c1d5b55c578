"""`penstock erase`: take rows out of a table for ever."""

import re
import uuid
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pipelines.cli.options import GlobalOptions, cluster_option, confirm, only_cluster, table_of, topic_argument
from pipelines.cli.output import certificates, console, log_lines
from pipelines.cli.output.log_lines import printable
from pipelines.cli.output.result import CommandResult, prints_result, result_of_topic
from resources.explanations.explanation import ExitCode
from resources.printed import printed

if TYPE_CHECKING:
    from pipelines.layout.conditions import Condition
    from pipelines.table.lake_table import LakeTable
    from resources.settings.settings import Settings

_WHICH_ROWS = "say which rows: --where CONDITION, --file FILE with --column NAME, or --missing"
_REQUEST = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@dataclass(frozen=True, slots=True, kw_only=True)
class EraseOptions:
    """The options of the command, as the user gave them; their help says what they mean."""

    where: str | None
    file: Path | None
    column: str | None
    missing: bool
    also_raw: bool
    dry_run: bool
    finish: bool
    outputs: bool
    request: str | None
    certificate: str | None
    yes: bool

    def checked_condition(self) -> "Condition | None":
        """The condition that the options give; None if they give none.

        Raises:
            UsageError: the options do not go together.
        """
        if self.finish and (self.where or self.file):
            raise click.UsageError("--finish takes no condition: it deletes files of earlier erasures")
        if self.missing and (
            self.where or self.file or self.column or self.also_raw or self.finish or self.certificate
        ):
            raise click.UsageError("--missing takes no condition: it is about rows that are not in the table any more")
        if self.outputs and not self.finish:
            raise click.UsageError("--outputs goes with --finish: it deletes files of outputs after earlier erasures")
        condition = self._condition()
        if condition is None and not (self.finish or self.missing or self.certificate is not None):
            raise click.UsageError(_WHICH_ROWS)
        if self.request is not None and not _REQUEST.fullmatch(self.request):
            raise click.UsageError(
                "--request takes up to 64 letters, digits, dots, dashes and underscores: no address of a person"
            )
        return condition

    def _condition(self) -> "Condition | None":
        from pipelines.layout.conditions import one_of, parse_condition

        if (self.file is None) != (self.column is None) or (self.where is not None and self.file is not None):
            raise click.UsageError(_WHICH_ROWS)
        if self.file is not None:
            return one_of(str(self.column), [line for line in self.file.read_text("utf-8").splitlines() if line])
        return None if self.where is None else parse_condition(self.where)

    def request_id(self) -> str:
        """The id that the user gave to the request, or a new one."""
        return self.request or uuid.uuid4().hex[:12]


@click.command("erase")
@topic_argument
@click.option(
    "--where", metavar="CONDITION", help="Erase the rows for which this is true, such as \"email = 'a@b.example'\"."
)
@click.option(
    "--file", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="A file with a value per line."
)
@click.option("--column", help="With --file: the column that has one of the values.")
@click.option("--missing", is_flag=True, help="Record rows as erased that another program deleted, or lost.")
@click.option("--also-raw", is_flag=True, help="Search for the values in bytes, keys, headers, lists and maps, too.")
@click.option("--dry-run", is_flag=True, help="Only count the rows, and change nothing.")
@click.option("--finish", is_flag=True, help="Delete the files from before earlier erasures and rewrites now.")
@click.option("--outputs", is_flag=True, help="With --finish: delete old files of Delta outputs of increments, too.")
@click.option(
    "--request", metavar="ID", help="What you call this request: a number of a ticket, and no name of a person."
)
@click.option("--certificate", metavar="REQUEST", help="Print the certificate of an earlier erasure.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@cluster_option
@prints_result
def erase_command(options: GlobalOptions, topic: str, cluster: str | None, **own: Any) -> CommandResult:
    """Erase rows of the table of TOPIC for ever.

    Only the files with such rows are written again, in one commit, and `verify` proves that nothing else went. No later
    load, replay or rewind brings the rows back. Increments and state tables take them out, too.

    A condition compares columns with values: =, <>, <, <=, >, >=, in (...), is null, and, or, not. The field b of a
    column a is a.b, and header('name') is a header. Values are never printed and never stored.

    The former files stay in the folder of the table until `penstock clean --delete` deletes them, after
    housekeeping.erase_days. With --finish they are deleted now, and so are those from before `penstock rewrite`. Kafka
    has the records until it deletes them itself. With --outputs the same is done in Delta outputs of increments that
    have followed the erasure. Their older versions cannot be read then.

    With --missing the command takes out no rows. If another program deleted rows or lost files, and
    nobody can fetch them again, it records the offsets that are gone. Then the table is proven with
    this gap, and loads continue. Rows that were changed or added must be taken back first.

    With --certificate the command changes nothing. It says what was erased, when its files were deleted, and what is
    still open. Give the condition or the file again: then all bytes below the folder of the table are searched for its
    values. The command ends with 0 only if the erasure is complete.

    \b
    Examples:
      penstock erase customers --where "email = 'zelda@example.org'" --dry-run
      penstock erase customers --file ids.txt --column id --also-raw --yes
      penstock erase customers --missing --dry-run
      penstock erase customers --finish
      penstock erase customers --finish --outputs
      penstock erase customers --certificate T-4711 --file ids.txt --column id
    """
    asked = EraseOptions(**own)
    condition = asked.checked_condition()
    settings = options.settings()
    name = only_cluster(settings, cluster)
    table = table_of(settings, name, topic)
    if asked.finish:
        return _finished(name, table, asked)
    if asked.certificate is not None:
        return _certified(settings, name, table, asked.certificate, condition)
    return _recorded(name, table, asked) if condition is None else _erased(name, table, asked, condition)


def _erased(cluster: str, table: "LakeTable", asked: EraseOptions, condition: "Condition") -> CommandResult:
    """Erase the rows of the condition."""
    from pipelines.cli.output.progress import progress
    from pipelines.maintenance.erase import EraseRequest, erase

    topic = str(table.where.topic)
    if not asked.dry_run:
        confirm(f"Erase the rows of {printable(topic)} for ever?", yes=asked.yes)
    with progress() as on_progress:
        erasure = EraseRequest(
            table=table,
            condition=condition,
            also_raw=asked.also_raw,
            run=uuid.uuid4().hex,
            name=asked.request_id(),
            dry_run=asked.dry_run,
            on_progress=on_progress(topic),
        )
        result = erase(erasure)
    _warn_of_others(table)
    return result_of_topic(cluster, result, console.erasures)


def _warn_of_others(table: "LakeTable") -> None:
    """Say that the other tables of the topic keep their rows."""
    from pipelines.verify.topic_tables import other_tables

    if others := ", ".join(str(other.where.topic) for other in other_tables(table)):
        log_lines.warning(
            f"the topic has other tables, which keep their rows: erase in them, too: {others}",
            cluster=table.where.cluster,
            topic=table.where.topic,
        )


def _recorded(cluster: str, table: "LakeTable", asked: EraseOptions) -> CommandResult:
    """Record the rows that are missing as erased."""
    from pipelines.maintenance.missing import MissingRequest, erase_missing

    if not asked.dry_run:
        question = "No replay and no rewind brings them back, even if the brokers still have their records."
        confirm(
            f"Record the missing rows of {printable(str(table.where.topic))} as erased for ever? {question}",
            yes=asked.yes,
        )
    request = MissingRequest(table=table, run=uuid.uuid4().hex, name=asked.request_id(), dry_run=asked.dry_run)
    result = erase_missing(request)
    return result_of_topic(cluster, result, console.missing_rows)


def _certified(
    settings: "Settings", cluster: str, table: "LakeTable", name: str, condition: "Condition | None"
) -> CommandResult:
    """The certificate of an erasure. The brokers are asked, and if they do not answer, it says so."""
    from kafka_io.errors import KafkaIOError
    from pipelines.certificates.certify import CertificateRequest, certify
    from resources.kafka import open_cluster

    request = CertificateRequest(
        table=table,
        request=name,
        condition=condition,
        erase_days=settings.housekeeping.erase_days,
    )
    with ExitStack() as opened:
        with suppress(KafkaIOError):
            request = replace(request, cluster=opened.enter_context(open_cluster(_asking_once(settings), cluster)))
        result = certify(request)
    records = [{"cluster": cluster, **printed(result)}]
    ends = [] if result.complete else [ExitCode.NOT_PROVEN]
    return CommandResult(records=records, show=certificates.certificates, ends=ends)


def _asking_once(settings: "Settings") -> "Settings":
    """The settings for a question to brokers that is not repeated."""
    return settings.model_copy(update={"caps": settings.caps.model_copy(update={"attempts": 1})})


def _finished(cluster: str, table: "LakeTable", asked: EraseOptions) -> CommandResult:
    """Delete the files that still have erased rows now."""
    from pipelines.maintenance.erased_files import finish_erasures
    from pipelines.maintenance.erased_outputs import delete_erased_of_outputs

    topic = str(table.where.topic)
    parts = finish_erasures(table, older_than=timedelta(), dry_run=asked.dry_run)
    if asked.outputs:
        parts = [*parts, *delete_erased_of_outputs(table, parts[0], dry_run=asked.dry_run)]
    records = [{"cluster": cluster, "topic": topic, **printed(part)} for part in parts]
    return CommandResult(records=records, show=partial(console.finished_erasures, topic, deleted=not asked.dry_run))
