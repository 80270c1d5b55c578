"""The five requests and their answers are the bytes that a genuine broker and its clients sent."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_io.v07.messages import (
    AnyRequest,
    FetchAnswer07,
    FetchRequest07,
    MultiFetchRequest07,
    MultiProduceRequest07,
    OffsetsAnswer07,
    OffsetsRequest07,
    ProduceRequest07,
)
from tests.golden_v07 import captured, requests_in

REQUESTS = captured("fetch", "multifetch", "offsets", "produce", "purged", "genuine-produce", "genuine-async")
APIS = {"FETCH", "MULTIFETCH", "OFFSETS", "PRODUCE", "MULTIPRODUCE"}
# Two produces of a megabyte were captured without their bytes.
WELL_FORMED = [record for record in REQUESTS if record["api"] in APIS and record["request_hex"]]


def parsed(record: dict[str, Any]) -> AnyRequest:
    requests: list[AnyRequest] = list(requests_in(bytes.fromhex(record["request_hex"])))
    (request,) = requests
    return request


@pytest.mark.parametrize("record", WELL_FORMED, ids=lambda record: record["id"])
def test_a_captured_request_is_read_and_written_to_the_same_bytes(record: dict[str, Any]) -> None:
    assert parsed(record).encode().hex() == record["request_hex"]


@pytest.mark.parametrize("record", captured("fetch", "purged"), ids=lambda record: record["id"])
def test_a_fetch_request_has_the_values_of_the_capture(record: dict[str, Any]) -> None:
    request = parsed(record)
    if isinstance(request, FetchRequest07):
        assert request == FetchRequest07(record["topic"], record["partition"], record["offset"], record["max_size"])
    else:
        assert isinstance(request, OffsetsRequest07 | MultiFetchRequest07)


@pytest.mark.parametrize("record", captured("offsets"), ids=lambda record: record["id"])
def test_an_offsets_request_has_the_values_of_the_capture(record: dict[str, Any]) -> None:
    assert parsed(record) == OffsetsRequest07(
        record["topic"], record["partition"], record["time"], record["max_offsets"]
    )


ANSWERED = [record for record in WELL_FORMED if record["response_hex"] and record["connection_after"] != "unusable"]


@pytest.mark.parametrize("record", ANSWERED, ids=lambda record: record["id"])
def test_a_captured_answer_is_read_and_written_to_the_same_bytes(record: dict[str, Any]) -> None:
    request = parsed(record)
    assert isinstance(request, FetchRequest07 | MultiFetchRequest07 | OffsetsRequest07)
    frame = bytes.fromhex(record["response_hex"])
    answer = request.decode_answer(memoryview(frame)[4:])
    assert answer.encode() == frame
    if "offsets" in record["response"]:
        assert isinstance(answer, OffsetsAnswer07)
        assert list(answer.offsets) == record["response"]["offsets"]
    if "message_set_bytes" in record["response"]:
        assert isinstance(answer, FetchAnswer07)
        assert (answer.error, len(answer.message_set)) == (
            record["response"]["error_code"],
            record["response"]["message_set_bytes"],
        )


names = st.text(max_size=20)
int32s = st.integers(-(2**31), 2**31 - 1)
int64s = st.integers(-(2**63), 2**63 - 1)
fetches = st.builds(FetchRequest07, names, int32s, int64s, int32s)
produces = st.builds(ProduceRequest07, names, int32s, st.binary(max_size=50))
requests = st.one_of(
    fetches,
    produces,
    st.builds(OffsetsRequest07, names, int32s, int64s, int32s),
    st.builds(MultiFetchRequest07, st.lists(fetches, max_size=4).map(tuple)),
    st.builds(MultiProduceRequest07, st.lists(produces, max_size=4).map(tuple)),
)


@given(requests)
def test_any_request_survives_the_wire(request: AnyRequest) -> None:
    (decoded,) = requests_in(request.encode())
    assert decoded == request
