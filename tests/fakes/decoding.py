"""A decoder that loses rows, which the counts in the headers of batches must reveal."""

import pyarrow as pa
import pytest

from kafka_io.records.decoded_batch import DecodedBatch
from kafka_io.records.decoder import Decoder


def lose_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every decoder of this process lose every seventh row of a batch, and call it compacted."""
    intact = Decoder._take

    def losing(decoder: Decoder, next_offset: int) -> DecodedBatch:
        decoded = intact(decoder, next_offset)
        kept = [row for row in range(decoded.batch.num_rows) if row % 7 != 6]
        gaps = {"compacted": decoded.batch.num_rows - len(kept)}
        return DecodedBatch(decoded.batch.take(pa.array(kept)), decoded.next_offset, gaps)

    monkeypatch.setattr(Decoder, "_take", losing)
