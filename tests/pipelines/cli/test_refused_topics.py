"""A topic with a table that the cluster cannot describe now is an error, and never a deleted topic."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from kafka_io.messages.metadata import MetadataRequest, MetadataResponse
from kafka_io.wire.conversation import ReceivedRequest
from pipelines.cli.main import main
from tests.fakes.cluster import FakeCluster
from tests.fakes.records import holding

METADATA = MetadataRequest.API.key


def run(settings: Path, *arguments: str) -> tuple[int, str]:
    """The exit code and the output of a command."""
    result = CliRunner().invoke(main, ["--settings", str(settings), *arguments])
    return result.exit_code, result.output


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    """Settings whose attempts end at once; the cluster is added by the test."""
    return tmp_path / "penstock.toml"


def write(settings: Path, fake: FakeCluster) -> None:
    bootstrap = ",".join(broker.address for broker in fake.bootstrap)
    settings.write_text(f'lake = "lake"\n[caps]\nattempts = 1\n[clusters.main]\nbootstrap = "{bootstrap}"\n')


@pytest.mark.parametrize("code", [5, -1, 29])
def test_a_topic_with_a_table_and_an_error_fails_a_load_and_is_not_gone(code: int, settings: Path) -> None:
    with FakeCluster(logs={0: holding(0, 5)}) as fake:  # fault A13
        write(settings, fake)
        assert run(settings, "load", "--all")[0] == 0

        def refused(received: ReceivedRequest) -> MetadataResponse:
            answer = fake.metadata(received)
            return replace(answer, topics=tuple(replace(topic, error_code=code) for topic in answer.topics))

        for broker in fake.brokers:
            broker.handlers[METADATA] = refused
        exit_code, output = run(settings, "load", "--all", "--json")
        assert exit_code != 0
        assert "nothing to load" not in output
        exit_code, output = run(settings, "status", "--json")
        assert exit_code != 0
        [status] = json.loads(output[output.index("{") :])["results"]
        assert (status["topic"], status["state"]) == ("clicks", "error")


@pytest.mark.parametrize("code", [129, 41, -1, 0])
def test_an_answer_about_nothing_is_an_error_that_can_pass(code: int, settings: Path) -> None:
    with FakeCluster(logs={0: holding(0, 5)}) as fake:  # fault A13
        write(settings, fake)
        assert run(settings, "load", "--all")[0] == 0

        def nothing(received: ReceivedRequest) -> MetadataResponse:
            answer = fake.metadata(received)
            return replace(answer, topics=(), brokers=answer.brokers if code else (), error_code=code)

        fake.brokers[0].handlers[METADATA] = nothing
        assert run(settings, "load", "--all")[0] == 0
        assert "loaded" in run(settings, "status")[1]
        fake.brokers[1].handlers[METADATA] = nothing
        for command in (("load", "--all"), ("status",)):
            exit_code, output = run(settings, *command)
            assert (exit_code, "gone" in output) == (3, False)
            assert "nothing to load" not in output
