"""Compiles the decoders that loads use, before a load needs them: numba does so once for a machine, for seconds.

A decoder that is in numba's cache is only loaded from it.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from kafka_io.hashes import keyed_hashes
from kafka_io.model import Generation
from kafka_io.reader.source import warm
from kafka_io.values.avro import decoder as avro_decoder
from kafka_io.values.json import decoder as json_decoder
from kafka_io.values.protobuf import decoder as protobuf_decoder
from resources.settings.settings import Settings

RECORDS, RECORDS_OF_07, HASHES = "records", "records of 0.7", "hashes"
_OF_FORMATS: Mapping[str, frozenset[str]] = {
    "avro": frozenset({"avro"}),
    "debezium": frozenset({"avro", "json"}),
    "json": frozenset({"json"}),
    "protobuf": frozenset({"protobuf"}),
}
"""The decoders that a format of the settings needs. Other formats have none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmDecoder:
    """A decoder that is compiled.

    Args:
        decoder: what it decodes.
        seconds: how long it took; much less than a second if it was compiled before.
    """

    decoder: str
    seconds: float


DECODERS: dict[str, Callable[[], None]] = {
    RECORDS: partial(warm, Generation.MODERN),
    RECORDS_OF_07: partial(warm, Generation.V07),
    "avro": avro_decoder.warm,
    "json": json_decoder.warm,
    "protobuf": protobuf_decoder.warm,
    HASHES: keyed_hashes.warm,
}
"""All decoders, and what makes hashes, and how each is compiled."""


def needed(settings: Settings) -> list[str]:
    """The names of the decoders that topics of these settings need."""
    names = {RECORDS}
    for cluster in settings.clusters.values():
        if cluster.zookeeper and cluster.generation in {None, Generation.V07}:
            names.add(RECORDS_OF_07)
    for options in settings.topics.sections.values():
        for format_ in (options.format.format, options.format.key_format):
            names |= _OF_FORMATS.get(format_, frozenset())
        names |= {HASHES} if options.format.load.secrets else set()
    return [name for name in DECODERS if name in names]


def compiled(names: Sequence[str]) -> Iterator[WarmDecoder]:
    """Compile decoders, one after the other."""
    for name in names:
        started = time.monotonic()
        DECODERS[name]()
        yield WarmDecoder(decoder=name, seconds=time.monotonic() - started)
