"""The third part of the demo: a passenger is erased, a summary follows, and a certificate says what is left."""

from dataclasses import dataclass
from datetime import timedelta
from functools import partial

import pyarrow as pa

from kafka_io.producer.message import Message
from penstock import DeltaOutput, Increment, apply_increment
from pipelines.certificates.certify import CertificateRequest, certify
from pipelines.cli.output import console
from pipelines.cli.output.certificates import certificates
from pipelines.cli.output.printed_table import print_table
from pipelines.demo.data import json_values, rows_of
from pipelines.demo.state import MODERN, DemoState
from pipelines.demo.steps import chapter, out
from pipelines.formats.tables import lake_table
from pipelines.layout.conditions import parse_condition
from pipelines.load.load import Loader
from pipelines.maintenance.erase import EraseRequest, erase
from pipelines.maintenance.erased_files import finish_erasures
from pipelines.table.lake_table import LakeTable
from pipelines.verify.verify import verify
from resources.kafka import open_cluster, open_producer
from resources.machines.spark import open_session
from resources.printed import printed
from resources.settings.settings import Settings
from resources.stores.lake import Lake

TOPIC = "bookings"
REQUEST = "ticket-4711"
_FLIGHTS, _PASSENGERS = 1_000, 300
_PASSENGER = "passenger42@mail.example"


def bookings() -> pa.Table:
    """A passenger for each of the first flights of 2013: names are made up, and most passengers fly several times."""
    flights = rows_of("flights").slice(0, _FLIGHTS).select(["carrier", "flight", "origin", "dest"])
    passengers = [f"passenger{number % _PASSENGERS}@mail.example" for number in range(flights.num_rows)]
    return flights.add_column(0, "passenger", pa.array(passengers))


def publish(settings: Settings, rows: pa.Table) -> None:
    """Publish bookings."""
    with open_producer(settings, MODERN) as producer:
        producer.send_many([Message(topic=TOPIC, value=value) for value in json_values(rows)])


@dataclass(frozen=True, kw_only=True)
class ForgottenStory:
    """The chapters about one passenger, in the order in which `run` calls them."""

    state: DemoState
    settings: Settings

    @property
    def table(self) -> LakeTable:
        """The table of the topic."""
        return lake_table(Lake.of(self.settings), MODERN, TOPIC)

    def run(self) -> bool:
        """Run all chapters on a running server; return whether exactly the passenger is gone, and that is certified."""
        with chapter("Bookings of passengers arrive, and a summary counts them by carrier"):
            publish(self.settings, bookings())
            self.load()
            counted = self.summarize()
        return self.forget(counted)

    def load(self) -> None:
        """Load the bookings, as `penstock load` does. They are so few that no Spark session is opened."""
        with open_cluster(self.settings, MODERN) as cluster:
            result = Loader.of(self.settings, cluster, partial(open_session, self.settings.spark)).load(TOPIC)
        console.loads([{"cluster": MODERN, **printed(result)}])

    def forget(self, counted: int) -> bool:
        """Erase the passenger from a table with so many rows."""
        with chapter("A passenger asks to be forgotten: the table is proven before and after penstock erase"):
            before = self._is_proven()
            erased = self._erase()
            after = self._is_proven()
        with chapter("The next increment takes the bookings of the passenger out of the summary"):
            remaining = self.summarize()
        with chapter("penstock erase --finish deletes the former files; --certificate says what is left"):
            done = finish_erasures(self.table, older_than=timedelta(), dry_run=False)
            console.erased_files(TOPIC, printed(done), deleted=True)
            complete = self._certify()
        return before and after and complete and erased == counted - remaining > 0

    def summarize(self) -> int:
        """Update the summary, print it, and return how many bookings it counts."""
        output = DeltaOutput(uri=str(self.state.home / "bookings_per_carrier"))
        apply_increment(
            self.table,
            partial(_totals, into=output),
            consumer="carriers",
            into=output,
            removing=lambda _: "carrier IS NOT NULL",  # the new totals replace all old ones
        )
        table = output.open()
        assert table is not None
        totals = table.to_pyarrow_table().sort_by([("bookings", "descending"), ("carrier", "ascending")]).to_pylist()
        print_table("carrier >bookings", totals[:3])
        count: int = sum(row["bookings"] for row in totals)
        out.print(f"  {count:,} bookings of {len(totals)} carriers")
        return count

    def _erase(self) -> int:
        condition = parse_condition(f"passenger = '{_PASSENGER}'")
        result = erase(EraseRequest(table=self.table, condition=condition, run="demo", name=REQUEST))
        console.erasures([{**printed(result), "cluster": MODERN}])
        return result.rows

    def _is_proven(self) -> bool:
        proof = verify(self.table)
        console.proofs([printed(proof)])
        return proof.proven

    def _certify(self) -> bool:
        condition = parse_condition(f"passenger = '{_PASSENGER}'")
        with open_cluster(self.settings, MODERN) as cluster:
            certificate = certify(
                CertificateRequest(
                    table=self.table,
                    request=REQUEST,
                    condition=condition,
                    erase_days=self.settings.housekeeping.erase_days,
                    cluster=cluster,
                )
            )
        certificates([printed(certificate)])
        return certificate.complete


def _totals(increment: Increment, into: DeltaOutput) -> pa.Table:
    """The known totals, with the new bookings and without those that were removed."""
    parts = [_signed(increment.arrow(["carrier"]), 1), _signed(increment.removed(["carrier"]), -1)]
    known = into.open()
    if known is not None:
        parts.append(known.to_pyarrow_table().select(_TOTALS.names).cast(_TOTALS))
    totals = pa.concat_tables(parts).group_by("carrier").aggregate([("bookings", "sum")])
    return totals.rename_columns({"bookings_sum": "bookings"}).select(_TOTALS.names)


_TOTALS = pa.schema([("carrier", pa.string()), ("bookings", pa.int64())])


def _signed(rows: pa.RecordBatchReader, sign: int) -> pa.Table:
    carriers = rows.read_all().column("carrier")
    return pa.table([carriers, pa.array([sign] * len(carriers), pa.int64())], schema=_TOTALS)
