"""Requests and answers that were captured between a genuine 0.7.2 broker and its own clients."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kafka_io.testing.v07.config import BrokerConfig07
from kafka_io.v07.messages import API_BYTES, AnyRequest, decode_request
from kafka_io.wire.framing import Frames
from tests.receiving import receive

WIRE = Path(__file__).parent / "golden" / "v07" / "wire"


def captured(*files: str) -> list[Any]:
    """The captured records of these files, each with its id."""
    return [record for file in files for record in json.loads((WIRE / f"{file}.json").read_text())]


def requests_in(data: bytes) -> Iterator[AnyRequest]:
    """The requests in the bytes of a client, as a broker reads them."""
    max_bytes = BrokerConfig07(broker_id=0, data_dir=Path()).max_request_bytes
    frames = Frames(min_size=API_BYTES, max_size=lambda: max_bytes)
    return map(decode_request, receive(frames, data))
