"""`penstock verify`."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click

from pipelines.cli import console
from pipelines.cli.options import CommandResult, GlobalOptions, Selection, prints_result, selects_topics
from resources.settings import Settings

if TYPE_CHECKING:
    from pipelines.loading.table import LakeTable
    from pipelines.maintenance.deep_verify import DeepProof


@click.command("verify")
@selects_topics
@click.option("--deep", is_flag=True, help="Also compare each row with the record that the brokers still hold.")
@prints_result
@click.pass_obj
def verify_command(options: GlobalOptions, selection: Selection, deep: bool) -> CommandResult:
    """Prove that every committed offset is in its table exactly once.

    The command reads only the tables. With --deep it also reads the brokers again, as far back as they still hold the
    records of the tables.

    \b
    Examples:
      penstock verify --all
      penstock verify clicks --deep
      penstock verify clicks views --json
    """
    from pipelines.loading.verify import verify

    settings = options.settings()
    records: list[dict[str, Any]] = []
    for name in selection.clusters(settings):
        tables = selection.tables(settings, name)
        proofs = _deep_proofs(settings, name, tables) if deep else map(verify, tables)
        records += [{"cluster": name, **proof.as_dict()} for proof in proofs]
    failed = not all(proof["proven"] for proof in records)
    return CommandResult(records=records, show=console.proofs, failed=failed)


def _deep_proofs(settings: Settings, cluster: str, tables: Sequence["LakeTable"]) -> "Iterator[DeepProof]":
    from pipelines.maintenance.deep_verify import deep_verify
    from resources.kafka import open_cluster

    with open_cluster(settings, cluster) as connected, console.progress() as on_progress:
        for table in tables:
            yield deep_verify(table, connected, on_progress=on_progress(str(table.where.topic)))
