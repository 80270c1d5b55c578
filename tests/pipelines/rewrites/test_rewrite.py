"""`penstock rewrite` stores all rows of a table again by the rules of the settings, in one commit."""

import hmac
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from pipelines.increments.delta_output import DeltaOutput
from pipelines.increments.increment import Increment, OnReplaced, apply_increment
from pipelines.ledger.ledger import CommitKind
from pipelines.maintenance.clean import clean
from pipelines.rewrites.rewrite import RewriteRequest, rewrite
from pipelines.rewrites.rewrite_result import TopicRewrite
from pipelines.state_tables.proof import prove_state
from pipelines.state_tables.state_table import state_output
from pipelines.state_tables.update import update_state
from pipelines.verify.verify import verify
from resources.errors import RowsReplaced
from resources.settings.topic_formats import TopicFormat
from resources.settings.topic_options import TopicOptions
from resources.settings.topic_state import StateSettings
from tests.fakes.cluster import FakeCluster
from tests.fakes.typed import TypedTopic, append, log_of

pytestmark = pytest.mark.slow  # each test fills a table and changes it

KEY = b"0123456789abcdef"
ZELDA = (
    b'{"id": 1, "email": "zelda@example.org", "phone": "+49", "password": "geheim", "lines": [{"mail": "a", "n": 1}]}'
)
YAN = b'{"id": 2, "email": null, "phone": null, "lines": []}'
BROKEN = b'{"id": 3, "id": 4}'


def hash_of(text: str) -> str:
    return f"k1:{hmac.digest(KEY, text.encode(), 'sha256').hex()[:32]}"


@pytest.fixture
def topic(fake: FakeCluster, tmp_path: Path) -> Iterator[TypedTopic]:
    (tmp_path / "people").write_bytes(KEY)
    fake.logs = {0: log_of([ZELDA, YAN, BROKEN])}
    with fake:
        topic = TypedTopic(
            fake=fake,
            folder=tmp_path / "lake",
            format_={"format": "json", "key_format": "text", "max_bad_share": 1},
            secrets={
                "people": {"id": "k1", "key": f"file:{tmp_path}/people"},
                "others": {"id": "k2", "key": f"file:{tmp_path}/people"},
            },
        )
        assert topic.load().error is None
        append(fake.logs[0], [ZELDA])
        assert topic.load().error is None
        yield topic


def rewritten(topic: TypedTopic, *, dry_run: bool = False, **rules: Any) -> TopicRewrite:
    topic.format_ = {**topic.format_, "load": rules}
    format_ = topic.settings.format_of("clicks")
    return rewrite(RewriteRequest(table=topic.table, format=format_, run="again", dry_run=dry_run))


RULES: dict[str, Any] = {
    "drop": ["password"],
    "mask": {"phone": "***"},
    "hash": {"email": "people", "lines.mail": "people"},
    "key": "hash:people",
}
COLUMNS = ("_kafka_key", "_kafka_key_value", "email", "phone", "password", "lines", "_raw")


def test_old_rows_are_stored_as_new_ones_are(topic: TypedTopic) -> None:
    result = rewritten(topic, **RULES)
    assert result.failure is None
    assert (result.rows, result.files) == (4, 2)
    assert result.changes == ("email", "lines.mail", "password", "phone", "_kafka_key", "_raw")
    append(topic.fake.logs[0], [ZELDA, BROKEN])
    assert topic.load().error is None
    rows = topic.rows(*COLUMNS)
    assert rows[0] == {
        "_kafka_key": hash_of("0").encode(),
        "_kafka_key_value": hash_of("0"),
        "email": hash_of("zelda@example.org"),
        "phone": "***",
        "password": None,
        "lines": [{"mail": hash_of("a"), "n": 1}],
        "_raw": None,
    }
    without_key = [{name: row[name] for name in COLUMNS[2:]} for row in rows]
    assert without_key[3] == without_key[4] == without_key[0]
    assert without_key[2] == without_key[5]
    assert topic.deep().problems == ()
    assert verify(topic.table).problems == ()
    data = b"".join(path.read_bytes() for path in Path(topic.table.uri).glob("_kafka_loaded_date=*/*.parquet"))
    assert topic.entry.state.rules.since == 0
    assert KEY not in data


def test_a_table_that_follows_the_rules_is_not_written_again(topic: TypedTopic) -> None:
    first = rewritten(topic, **RULES)
    again = rewritten(topic, **RULES)
    assert (again.failure, again.version, again.changes) == (None, first.version, ())
    assert topic.entry.kind is CommitKind.REWRITE


def test_a_dry_run_only_says_what_would_change(topic: TypedTopic) -> None:
    version = topic.snapshot.version
    result = rewritten(topic, dry_run=True, **RULES)
    assert (result.failure, result.rows, result.files, result.version) == (None, 4, 2, version)
    assert topic.snapshot.version == version


def test_rows_that_are_hashed_already_are_not_hashed_twice(topic: TypedTopic) -> None:
    rewritten(topic, **RULES)
    before = topic.rows("email", "_kafka_key", "_kafka_key_value")
    result = rewritten(topic, **{**RULES, "drop": ["password", "phone"], "mask": {}})
    assert (result.failure, result.changes) == (None, ("phone",))
    assert topic.rows("email", "_kafka_key", "_kafka_key_value") == before
    assert {row["phone"] for row in topic.rows("phone")} == {None}
    assert topic.deep().problems == ()


@pytest.mark.parametrize(
    ("rules", "named"),
    [
        ({}, "email, lines.mail"),
        ({**RULES, "hash": {"email": "others", "lines.mail": "people"}}, "email"),
        ({**RULES, "key": "keep"}, "_kafka_key"),
        ({**RULES, "key": "hash:others"}, "_kafka_key"),
        ({**RULES, "mask": {}}, "phone"),
        (
            {**RULES, "mask": {"phone": "***", "id": "x"}},
            "the column id has the type int64, and by the rules it would be string",
        ),
    ],
)
def test_values_that_are_gone_do_not_come_back(topic: TypedTopic, rules: dict[str, Any], named: str) -> None:
    rewritten(topic, **RULES)
    result = rewritten(topic, **rules)
    assert result.failure is not None
    assert (result.failure.code, named in result.failure.reason) == ("PS-508", True), result.failure.reason


def test_a_hash_can_become_a_mask(topic: TypedTopic) -> None:
    rewritten(topic, **RULES)
    assert (
        rewritten(topic, **{**RULES, "hash": {"lines.mail": "people"}, "mask": {"phone": "***", "email": "-"}}).failure
        is None
    )
    assert [row["email"] for row in topic.rows("email")] == ["-", None, None, "-"]


def test_a_raw_table_gets_hashed_keys_and_fewer_headers(fake: FakeCluster, topic: TypedTopic, tmp_path: Path) -> None:
    topic.folder = tmp_path / "other"
    topic.format_ = {"format": "raw"}
    assert topic.load().error is None
    result = rewritten(topic, key="hash:people", headers=[])
    assert (result.failure, result.changes) == (None, ("_kafka_key", "_kafka_headers"))
    rows = DeltaTable(topic.table.uri).to_pyarrow_table().sort_by("offset")
    assert rows.column("key")[0].as_py() == hash_of("0").encode()
    append(fake.logs[0], [ZELDA])
    assert topic.load().error is None
    assert topic.deep().problems == ()
    assert verify(topic.table).problems == ()


def test_what_was_dropped_from_older_rows_is_still_not_compared(topic: TypedTopic) -> None:
    assert rewritten(topic, drop=["password"], raw="keep").failure is None
    topic.format_ = {**topic.format_, "load": {"raw": "keep"}}
    append(topic.fake.logs[0], [ZELDA])
    assert topic.load().error is None
    assert [row["password"] for row in topic.rows("password")] == [None, None, None, None, "geheim"]
    assert topic.entry.state.rules.varying == ("password",)
    assert topic.deep().problems == ()


def copy(increment: Increment) -> pa.Table:
    return increment.arrow(["id", "email"]).read_all()


@pytest.mark.parametrize("on_replaced", ["apply", "ignore", "fail"])
@pytest.mark.parametrize("cleaned", [False, True])
def test_outputs_follow_a_rewrite_as_they_chose(
    cleaned: bool, on_replaced: OnReplaced, topic: TypedTopic, tmp_path: Path
) -> None:
    """An output that ignores replaced rows has the values of before, until somebody builds it again."""
    output = DeltaOutput(uri=str(tmp_path / "out"))
    options: dict[str, Any] = {"consumer": "c", "into": output, "on_replaced": on_replaced}
    apply_increment(topic.table, copy, **options)
    assert rewritten(topic, **RULES).failure is None
    if cleaned:
        clean(topic.table, keep=timedelta(), target_bytes=1, dry_run=False)
    append(topic.fake.logs[0], [b'{"id": 9, "email": "new@shop.example"}'])
    assert topic.load().error is None
    if on_replaced == "fail":
        with pytest.raises(RowsReplaced):
            apply_increment(topic.table, copy, **options)
        return
    apply_increment(topic.table, copy, **options)
    rows = DeltaTable(output.uri).to_pyarrow_table().sort_by("_source_offset").column("email").to_pylist()
    old = "zelda@example.org" if on_replaced == "ignore" else hash_of("zelda@example.org")
    assert rows == [old, None, None, old, hash_of("new@shop.example")]
    assert apply_increment(topic.table, copy, **options) is None


def test_a_state_table_follows_a_rewrite_of_its_keys(topic: TypedTopic) -> None:
    state = TopicOptions(format=TopicFormat(format="json"), state=StateSettings(key=("email",)))

    def newest() -> dict[str | None, int]:
        update_state(topic.table, state)
        table = state_output(topic.table).open()
        assert table is not None
        return {row["email"]: row["_kafka_offset"] for row in table.to_pyarrow_table().to_pylist()}

    assert newest() == {"zelda@example.org": 3}
    assert rewritten(topic, **RULES).failure is None
    assert newest() == {hash_of("zelda@example.org"): 3}
    append(topic.fake.logs[0], [ZELDA])
    assert topic.load().error is None
    assert newest() == {hash_of("zelda@example.org"): 4}
    assert prove_state(topic.table, state).problems == ()
