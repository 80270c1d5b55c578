"""The rights that docs/security.md lists are enough, and without one of them the message names it.

The broker has an authorizer, and `bob` has only the rights that a test grants him.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import pytest
from click.testing import CliRunner, Result
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._acl import AclBinding, AclBindingFilter, AclOperation, AclPermissionType
from confluent_kafka.admin._resource import ResourcePatternType, ResourceType

from pipelines.cli.main import main
from tests.brokers.secure import PASSWORD, RESTRICTED_USER, SecureBroker
from tests.thorough import also

pytestmark = pytest.mark.brokers

RuleT = TypeVar("RuleT", AclBinding, AclBindingFilter)

GROUP = "lake-offsets"
RIGHTS = {"load": ("READ", "DESCRIBE_CONFIGS"), "publish": ("WRITE",)}
_ANSWER_S = 60.0


@contextmanager
def granted(secure: SecureBroker, topic: str, rights: Sequence[str], *, group: bool = False) -> Iterator[None]:
    """Give `bob` these rights to the topic, and READ to the group, for the length of a `with` block."""
    admin = AdminClient({"bootstrap.servers": secure.broker.bootstrap, "log_level": 3})
    resources = [(ResourceType.TOPIC, topic, right) for right in rights]
    resources += [(ResourceType.GROUP, GROUP, "READ")] if group else []
    bindings = [acl(AclBinding, kind, name, right) for kind, name, right in resources]
    for result in admin.create_acls(bindings).values() if bindings else ():
        result.result(_ANSWER_S)
    try:
        yield
    finally:
        filters = [acl(AclBindingFilter, kind, name, right) for kind, name, right in resources]
        for result in admin.delete_acls(filters).values() if filters else ():
            result.result(_ANSWER_S)


def acl(kind: type[RuleT], resource: ResourceType, name: str, right: str) -> RuleT:
    """The rule that allows `bob` an operation."""
    pattern, operation = ResourcePatternType.LITERAL, AclOperation[right]
    return kind(resource, name, pattern, f"User:{RESTRICTED_USER}", "*", operation, AclPermissionType.ALLOW)


@pytest.fixture
def penstock(secure: SecureBroker, tmp_path: Path) -> Callable[..., Result]:
    """Runs a command as `bob`."""
    (tmp_path / "password").write_text(PASSWORD)
    settings = tmp_path / "penstock.toml"

    def run(*arguments: str, stdin: str | None = None, group: bool = False) -> Result:
        settings.write_text(
            'lake = "lake"\n[caps]\nattempts = 2\n[clusters.main]\n'
            f'bootstrap = "{secure.bootstrap("SASL_PLAINTEXT")}"\n'
            + (f'mirror_group = "{GROUP}"\n' if group else "")
            + '[clusters.main.security.sasl]\nmechanism = "SCRAM-SHA-256"\npassword = "file:password"\n'
            + f'username = "{RESTRICTED_USER}"\n'
        )
        return CliRunner().invoke(main, ["--settings", str(settings), *arguments], input=stdin)

    return run


def test_the_documented_rights_are_enough(secure: SecureBroker, topic: str, penstock: Callable[..., Result]) -> None:
    secure.broker.create_topic(topic)
    with granted(secure, topic, RIGHTS["publish"]):
        published = penstock("publish", topic, "-", stdin="one\ntwo\n")
        assert published.exit_code == 0, published.output
    with granted(secure, topic, RIGHTS["load"], group=True):
        for command in (
            ("load", topic),
            ("load", "--all"),
            ("status",),
            ("topics",),
            ("tail", topic, "--from", "earliest", "--max", "2"),
            ("verify", topic, "--deep"),
            ("config", "check"),
        ):
            completed = penstock(*command, group=True)
            assert completed.exit_code == 0, (command, completed.output)
            assert "authoriz" not in completed.output, (command, completed.output)


@pytest.mark.parametrize(
    ("command", "rights", "missing"),
    [
        ("publish", ("DESCRIBE",), "topic; grant it WRITE"),
        also("publish", (), "topic; grant it DESCRIBE"),
        ("load", (), "topic; grant it DESCRIBE"),
        ("load", ("DESCRIBE", "DESCRIBE_CONFIGS"), "topic; grant it READ"),
        also("tail", ("DESCRIBE", "DESCRIBE_CONFIGS"), "topic; grant it READ"),
        ("status", ("READ",), "topic; grant it DESCRIBE_CONFIGS"),
        ("load", ("READ", "DESCRIBE_CONFIGS"), "group; grant it DESCRIBE"),  # READ includes it
    ],
)
def test_a_message_names_the_right_that_is_missing(
    command: str, rights: Sequence[str], missing: str, secure: SecureBroker, topic: str, penstock: Callable[..., Result]
) -> None:
    secure.broker.create_topic(topic)
    secure.broker.produce(topic, [(None, b"one")])
    arguments = {
        "publish": ("publish", topic, "-"),
        "load": ("load", topic),
        "tail": ("tail", topic, "--from", "earliest", "--max", "1"),
        "status": ("status",),
    }[command]
    with granted(secure, topic, rights):
        completed = penstock(*arguments, stdin="two\n", group="group" in missing)
    assert f"the client is not authorized to do this with the {missing} (error " in completed.output
