"""The topic of complete hours: flights of the first three days of January 2013, moved to the last three days.

They are moved because hours of 2013 would be followed by 13 years of complete hours without a flight.
"""

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from kafka_io.producer.message import Message
from pipelines.demo.data import json_values, rows_of
from pipelines.demo.state import DAYS, MODERN
from resources.kafka import open_producer
from resources.settings.settings import Settings

TOPIC = "departures"
_LATE_HOUR = "T15:"
"""The hour of the second day from which one flight is late."""


class Departures(NamedTuple):
    """The flights in the order of their hours, and one of them that is published later."""

    first_day: date
    in_time: pa.Table
    late: pa.Table

    @property
    def second_day(self) -> date:
        """The day after the first one."""
        return self.first_day + timedelta(days=1)


def departures(settings: Settings) -> Departures:
    """The flights with the columns of the settings, from the day on that the settings name."""
    options = settings.options_of(TOPIC)
    first_day = datetime.fromisoformat(options.catalog.complete_since or "").date()
    all_flights = rows_of("flights").select(list(options.format.columns))
    days = [_moved(all_flights, number, first_day + timedelta(days=number)) for number in range(DAYS)]
    flights = pa.concat_tables(days).sort_by("time_hour")
    late = _late_one(flights, first_day + timedelta(days=1))
    in_time = pa.concat_tables([flights.slice(0, late), flights.slice(late + 1)])
    return Departures(first_day=first_day, in_time=in_time, late=flights.slice(late, 1))


def _moved(flights: pa.Table, number: int, day: date) -> pa.Table:
    """The flights of one of the first days of 2013, in UTC, at another day."""
    past = str(date(2013, 1, 1) + timedelta(days=number))
    rows = flights.filter(pc.starts_with(flights["time_hour"], past))
    moved = pc.replace_substring(rows["time_hour"], past, str(day), max_replacements=1)
    return rows.set_column(rows.schema.get_field_index("time_hour"), "time_hour", moved)


def _late_one(flights: pa.Table, day: date) -> int:
    """The index of a flight of the late hour whose aircraft flies again later."""
    hour = pc.starts_with(flights["time_hour"], f"{day}{_LATE_HOUR}").to_pylist()
    tailnums = flights["tailnum"].to_pylist()
    stop = len(hour) - hour[::-1].index(True)
    return next(index for index in range(hour.index(True), stop) if tailnums[index] in tailnums[stop:])


def publish(settings: Settings, flights: pa.Table) -> None:
    """Publish flights with the tail number as the key and the hour as the timestamp, in the order of the rows."""
    with open_producer(settings, MODERN) as producer:
        producer.send_many(_messages(flights))


def _messages(flights: pa.Table) -> Sequence[Message]:
    return [
        Message(
            topic=TOPIC,
            value=value,
            key=tailnum and tailnum.encode(),
            timestamp_ms=int(datetime.fromisoformat(hour).astimezone(UTC).timestamp()) * 1000,
        )
        for value, tailnum, hour in zip(
            json_values(flights), flights["tailnum"].to_pylist(), flights["time_hour"].to_pylist(), strict=True
        )
    ]
