"""The text of a new settings file, with comments."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from resources.table_formats import TableFormat

_HEAD = """\
# The settings of Penstock. docs/settings.md explains every key, and `penstock config reference` prints the same.
# After a change, run `penstock config check`.

# Where the tables are: a folder (relative to this file) or a URI. Each topic is one table, LAKE/CLUSTER/TOPIC.
"""
_LAKE_OPTIONS = """
# Options of an object store. A secret is a reference, never the secret: env:NAME or file:PATH.
# [lake_options]
# aws_region = "eu-central-1"
# aws_secret_access_key = "env:AWS_SECRET_ACCESS_KEY"

# The cluster. The last part of the section's name is yours: it is a folder of the lake.
"""
_FORMATS: Mapping[TableFormat, str] = {
    "delta": "",
    "iceberg": """
# Iceberg tables, and the catalog that has their names: here the file LAKE/_catalog.db. See docs/iceberg.md.
table_format = "iceberg"
catalog = "sqlite"
""",
}
_SECURITY = """
# TLS and a login, if the brokers need them.
# [clusters.{cluster}.security]
# tls = true
# sasl = {{ mechanism = "SCRAM-SHA-512", username = "loader", password = "env:KAFKA_PASSWORD" }}
"""
_TAIL = """
# Which topics are loaded: regular expressions that match whole names. All by default; `deny` wins over `allow`.
# [topics]
# allow = ["clicks", "views\\\\..*"]
# deny = [".*_test"]

# A column for each field of the values of a topic. "json" and "text" need nothing else, "avro" needs a registry.
# [topics.clicks]
# format = "json"

# [registries.main]
# url = "http://localhost:8081"

# Limits. A run without Spark loads at most `slice_records` offsets of a topic at once.
# [caps]
# records_per_run = 2_000_000
"""


def settings_text(lake: str, cluster: str, settings: Mapping[str, Any], table_format: TableFormat = "delta") -> str:
    """The text of a settings file with one cluster; `settings` is its section."""
    security = settings.get("security")
    addresses = {key: value for key, value in settings.items() if key != "security"}
    parts = [_HEAD, f"lake = {_toml(lake)}\n", _FORMATS[table_format], _LAKE_OPTIONS]
    parts += _section(f"clusters.{cluster}", addresses)
    parts += ["\n", *_section(f"clusters.{cluster}.security", security)] if security else []
    parts += [] if security else [_SECURITY.format(cluster=cluster)]
    return "".join([*parts, _TAIL])


def _section(name: str, settings: Mapping[str, Any]) -> Iterator[str]:
    yield f"[{name}]\n"
    for key, value in settings.items():
        yield f"{key} = {_toml(value)}\n"


def _toml(value: Any) -> str:
    """A value in TOML. A section inside a section is on one line."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {_toml(item)}" for key, item in value.items()) + " }"
    return json.dumps(value, ensure_ascii=False)  # for texts and truth values, JSON is valid TOML
