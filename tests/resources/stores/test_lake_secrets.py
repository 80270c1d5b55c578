"""Options of the lake name secrets. Each process reads them itself, and nothing else contains them.

See faults X01, X02.
"""

import pickle
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.fs as pafs
import pytest

from kafka_io.errors import SecretMissing
from pipelines.defs.catalog.table_facts import TableInputs
from resources.errors import LakeRefused
from resources.settings.settings import Settings, SettingsError
from resources.settings.settings_shown import shown
from resources.stores.lake import Lake, filesystem
from resources.stores.lake_marker import use_lake
from tests.fakes.object_store import ACCESS_KEY, ObjectStore, object_store

SCHEMA = pa.schema([("value", pa.binary())])
KEY_OPTION = "aws_access_key_id"


@pytest.fixture(scope="module")
def store() -> Iterator[ObjectStore]:
    with object_store() as running:
        yield running


def settings_of(folder: Path, store: ObjectStore | None, reference: str) -> Settings:
    """Settings whose lake is in the store, and whose access key is this reference."""
    options = {**(store.options if store else {}), KEY_OPTION: reference}
    lines = "".join(f"{name} = {value!r}\n" for name, value in options.items())
    path = folder / "penstock.toml"
    path.write_text(f"lake = 's3://bucket/lake'\n[lake_options]\n{lines}[clusters.main]\nbootstrap = '127.0.0.1:1'\n")
    return Settings.load(path)


@pytest.mark.parametrize("reference", ["env:LAKE_KEY", "file:lake.key"])
def test_a_lake_is_opened_with_secrets_that_its_options_name(
    reference: str, store: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAKE_KEY", ACCESS_KEY)
    (tmp_path / "lake.key").write_text(f"{ACCESS_KEY}\n")
    lake = Lake.of(settings_of(tmp_path, store, reference))
    use_lake(lake)
    uri = lake.table_uri("main", f"topic-{reference[:3]}")
    lake.create(uri, SCHEMA, partition_by=[], configuration={})
    opened = lake.open(uri)
    assert opened is not None
    assert opened.version() == 0
    assert filesystem(uri, lake.options).get_file_info("_delta_log").type is pafs.FileType.Directory
    assert TableInputs(lake)._lake.options[KEY_OPTION] == lake.options[KEY_OPTION]
    monkeypatch.setenv("LAKE_KEY", "another")
    (tmp_path / "lake.key").write_text("another")
    with pytest.raises(LakeRefused, match="does not accept the credentials"):
        lake.open(uri)


def test_neither_the_lake_nor_its_tasks_nor_the_shown_settings_contain_the_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAKE_KEY", "canary")
    settings = settings_of(tmp_path, None, "env:LAKE_KEY")
    lake = Lake.of(settings)
    assert shown(settings)["lake_options"][KEY_OPTION] == "env:LAKE_KEY"
    assert b"env:LAKE_KEY" in pickle.dumps(lake)
    assert b"canary" not in pickle.dumps(lake)
    assert "canary" not in repr(lake)


def test_a_secret_that_this_process_does_not_have_is_named(tmp_path: Path) -> None:
    lake = Lake.of(settings_of(tmp_path, None, "file:absent.key"))
    with pytest.raises(SecretMissing, match=f"file:{tmp_path}/absent.key cannot be read"):
        lake.open("s3://bucket/lake/main/clicks")


def test_a_malformed_reference_is_refused_without_its_text(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"lake_options.*write a reference") as raised:
        settings_of(tmp_path, None, "env:canary!")
    assert "canary" not in str(raised.value)
