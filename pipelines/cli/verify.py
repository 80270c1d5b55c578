"""`penstock verify`."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

from pipelines.cli import console
from pipelines.cli.options import (
    FAILED,
    all_option,
    cluster_option,
    clusters_for,
    json_option,
    lake_of,
    opened,
    print_json,
    topics_argument,
)
from resources.settings import Settings

if TYPE_CHECKING:
    from pipelines.loading.table import LakeTable
    from pipelines.maintenance.deep_verify import DeepProof


@click.command("verify")
@topics_argument
@all_option
@cluster_option
@click.option("--deep", is_flag=True, help="Also compare each row with the record that the brokers still hold.")
@json_option
@click.pass_context
def verify_command(
    ctx: click.Context, topics: Sequence[str], every: bool, cluster: str | None, deep: bool, as_json: bool
) -> None:
    """Prove that every committed offset is in its table exactly once.

    The command reads only the tables. With --deep it also reads the brokers again, as far back as they still hold the
    records of the tables.

    \b
    Examples:
      penstock verify --all
      penstock verify clicks --deep
      penstock verify clicks views --json
    """
    from pipelines.loading.table import LakeTable
    from pipelines.loading.verify import Proof, verify
    from pipelines.maintenance.deep_verify import DeepProof

    settings = ctx.obj.settings()
    lake = lake_of(settings)
    proofs: list[tuple[str, Proof]] = []
    for name in clusters_for(settings, topics, every, cluster):
        known = topics or [topic for topic in lake.topics(name) if settings.rules(name).allows(topic)]
        tables = [LakeTable.of(lake, name, topic) for topic in known]
        proven = _deep_proofs(settings, name, tables) if deep else map(verify, tables)
        proofs += [(name, proof) for proof in proven]
    if as_json:
        print_json([{"cluster": name, **proof.as_dict()} for name, proof in proofs])
    else:
        console.comparisons([proof for _, proof in proofs if isinstance(proof, DeepProof)])
        console.proofs([proof for _, proof in proofs])
    ctx.exit(0 if all(proof.proven for _, proof in proofs) else FAILED)


def _deep_proofs(settings: Settings, cluster: str, tables: Sequence["LakeTable"]) -> "Iterator[DeepProof]":
    from pipelines.maintenance.deep_verify import deep_verify

    with opened(settings, cluster) as (connected, _), console.progress() as on_progress:
        for table in tables:
            yield deep_verify(table, connected, on_progress=on_progress(str(table.where.topic)))
