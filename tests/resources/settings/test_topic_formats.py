"""The first section of [topics] that matches a topic says its format."""

from pathlib import Path

import pytest

from resources.settings.settings import Settings, SettingsError
from resources.table_names import names_topic

MINIMAL = 'lake = "lake"\n[clusters.main]\nbootstrap = "127.0.0.1:9092"\n'

COMPLETE = '[topics.orders]\nevent_time = "timestamp"\ncomplete = "{}"\n'


def load(folder: Path, text: str) -> Settings:
    file = folder / "penstock.toml"
    file.write_text(MINIMAL + text)
    return Settings.load(file)


@pytest.mark.parametrize(
    ("name", "topic", "matches"),
    [
        ("orders", "orders", True),
        ("orders", "orders2", False),
        ("web.clicks", "web.clicks", True),
        ("web.clicks", "web-clicks", False),
        (r"web\.clicks", "web.clicks", True),
        ("web.*", "web.clicks", True),
        ("web.*", "old.web.clicks", False),
        ("a|b", "b", True),
    ],
)
def test_a_name_is_a_topic_unless_it_has_a_character_that_no_topic_has(name: str, topic: str, matches: bool) -> None:
    assert names_topic(name, topic) is matches


def test_the_first_section_that_matches_applies(tmp_path: Path) -> None:
    settings = load(
        tmp_path,
        '[topics]\nallow = "o.*"\n[topics.orders]\n[topics."o.*"]\nformat = "text"\nmax_bad_share = 0.5\n',
    )
    assert settings.format_of("orders").format == "raw"
    assert settings.format_of("offers").format == "text"
    assert settings.format_of("offers").max_bad_share == 0.5
    assert settings.format_of("views").format == "raw"
    assert settings.rules("main").allows("orders")
    assert not settings.rules("main").allows("views")


def test_the_allowed_lateness_is_given_in_minutes(tmp_path: Path) -> None:
    settings = load(tmp_path, '[topics.orders]\nevent_time = "timestamp"\nallowed_lateness_minutes = 1.5\n')
    assert settings.format_of("orders").allowed_lateness_ms == 90_000
    assert (settings.format_of("views").event_time, settings.format_of("views").allowed_lateness_ms) == (None, 600_000)


@pytest.mark.parametrize("since", ["2026-01-31", '"2026-01-31"', "2026-01-31T00:00:00"])
def test_the_first_complete_day_is_a_date_or_a_text(tmp_path: Path, since: str) -> None:
    options = load(tmp_path, COMPLETE.format("daily") + f"complete_since = {since}\n").options_of("orders")
    windows = options.catalog.complete_windows
    assert windows is not None
    assert windows.key(windows.first(str(options.catalog.complete_since))) == "2026-01-31"
    assert load(tmp_path, "").options_of("orders").catalog.complete_windows is None


PERSONAL = '[topics.orders]\nformat = "json"\ncolumns = {{ mail = "string", born = "date" }}\npersonal = ["{}"]\n'


@pytest.mark.parametrize("path", ["mail", "_kafka_key", "_kafka_headers", "_kafka_key_id", "born"])
def test_a_personal_field_is_a_declared_column_or_a_part_of_the_record(tmp_path: Path, path: str) -> None:
    settings = load(tmp_path, PERSONAL.format(path))
    assert settings.format_of("orders").personal == (path,)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ('[topics]\nalow = "x"', r"topics.alow is not a setting; did you mean 'allow'\?"),
        ('[topics.orders]\nformta = "text"', r"topics.orders.formta is not a setting; did you mean 'format'\?"),
        ('[topics.orders]\nevent_time = "at"', "`event_time` of a raw table is"),
        ('[topics.orders]\ncomplete = "hourly"', "`complete` needs `event_time`"),
        ('[topics.orders]\ncomplete_since = "2026-01-01"', "`complete_since` needs `complete`"),
        ('[topics.orders]\ntime_zone = "UTC"', "`time_zone` needs `complete`"),
        (COMPLETE.format("weekly"), "complete must be 'hourly' or 'daily'"),
        (COMPLETE.format("daily") + 'time_zone = "Berlin"', "time_zone: 'Berlin' is no time zone"),
        (COMPLETE.format("daily") + 'time_zone = "../etc"', "time_zone: '../etc' is no time zone"),
        (COMPLETE.format("hourly") + 'time_zone = "Asia/Kolkata"', "does not differ from UTC by whole hours"),
        (COMPLETE.format("daily") + 'complete_since = "1970-01-01"', "complete_since: write a year from 2001 to 2100"),
        (COMPLETE.format("daily") + "complete_since = 2026-01-01T07:00:00", 'complete = "daily" begins with a date'),
        (COMPLETE.format("hourly") + "complete_since = 2026-01-01T07:30:00", "a full hour without a zone"),
        (COMPLETE.format("hourly") + "complete_since = 2026-01-01T07:00:00Z", "a full hour without a zone"),
        (COMPLETE.format("hourly") + 'complete_since = "soon"', "complete_since: write a date, or a full hour"),
        (COMPLETE.format("hourly") + "complete_since = 7", "complete_since must be a text"),
        ("[topics.orders]\nallowed_lateness_minutes = -1", "topics.orders.allowed_lateness_minutes must be"),
        ('[topics.orders]\nformat = "xml"', "topics.orders.format must be 'raw', 'text', "),
        ('[topics.web.clicks]\nformat = "text"', "topics.web.clicks is not a setting"),
        ('[topics."o("]\nformat = "text"', r"'o\(' is neither a topic nor a regular expression"),
        ('[topics.orders]\nformat = "avro"', 'topics.orders.registry: the format "avro" needs the name of a registry'),
        ('[topics.orders]\nregistry = "main"', "topics.orders.registry: there is no registry 'main' in the settings"),
        ('[topics.orders]\ncolumns = { id = "long" }', 'topics.orders: `columns` belongs to the format "json"'),
        ('[topics.orders]\nformat = "text"\njson_schema = "o.json"', '`json_schema` belongs to the format "json"'),
        ('[topics.orders]\nformat = "json"\njson_schema = "{"', "topics.orders: the JSON Schema is not valid JSON"),
        (
            '[topics.orders]\nformat = "json"\njson_schema = "o.json"\ncolumns = { id = "long" }',
            "topics.orders: set `columns` or `json_schema`, not both",
        ),
        (
            '[topics.orders]\nformat = "json"\ncolumns = { id = "number" }',
            "topics.orders: column id has the unknown type 'number'",
        ),
        ('[topics.orders]\nformat = "protobuf"', 'the format "protobuf" needs the name of a registry'),
        ('[topics.orders]\nmessage = "a.B"', 'topics.orders: `message` belongs to the format "protobuf"'),
        ('[topics.orders]\nformat = "protobuf"\nmessage = "a b"', "message: write the full name of a message type"),
        ('[topics.orders]\nformat = "avro"\nproto_file = "a.proto"', 'belong to the format "protobuf"'),
        ('[topics.orders]\nformat = "protobuf"\nproto_path = ["a"]', "`proto_path` needs a `proto_file`"),
        (
            '[topics.orders]\nformat = "protobuf"\nproto_file = "a.proto"\nregistry = "main"',
            "topics.orders: set `proto_file` or `registry`, not both",
        ),
        ('[topics.orders]\nformat = "json"\navro_file = "a.avsc"', '`avro_file` belongs to the format "avro"'),
        ('[topics.orders]\nformat = "text"\navro_frame = "single_object"', "`avro_frame` needs an `avro_file`"),
        (
            '[topics.orders]\nformat = "avro"\navro_file = "a.avsc"\nregistry = "main"',
            "topics.orders: set `avro_file` or `registry`, not both",
        ),
        *(
            (f'[topics.orders]\nformat = "avro"\navro_file = "a.avsc"\navro_frame = "{frame}"', 'write "single_object"')
            for frame in ("", "glue", "glue:B7B4A7F0-9C96-4E4A-A687-FB5DE9EF0C63", "azure:" + 31 * "a", "confluent:1")
        ),
        (
            '[topics.orders]\nformat = "json"\nadd_schema_ids = true',
            "`add_schema_ids` needs values with schemas in a registry",
        ),
        ('[topics.orders]\nheader_columns = ["ce_id"]', '`header_columns` needs a `format` other than "raw"'),
        *(
            (f'[topics.orders]\nformat = "text"\nheader_columns = {names}', f"header_columns: {problem}")
            for names, problem in (
                ('["a", ""]', "the name '' is empty, or has a character"),
                ('["a b"]', "the name 'a b' is empty, or has a character"),
                ('["ce_id", "CE_ID"]', "two names are the same"),
            )
        ),
        ("[topics.orders]\nmax_bad_share = 2", "topics.orders.max_bad_share must be at most 1"),
        ('[topics.orders]\npersonal = ["mail"]', "`personal`: a raw table has no field 'mail'"),
        ('[topics.orders]\nformat = "text"\npersonal = ["_kafka_topic"]', "_kafka_topic is a column of Penstock"),
        (PERSONAL.format("phone"), "`personal`: the settings declare no column 'phone'"),
        (PERSONAL.format("born") + 'partition_by = "born"', "`partition_by` names the personal field 'born'"),
        (PERSONAL.format("born") + 'event_time = "born"', "`event_time` names the personal field 'born'"),
        ('[topics.orders]\nformat = "json"\npersonal_tags = ["PII"]', "`personal_tags` needs schemas with tags"),
    ],
)
def test_a_wrong_section_is_refused_with_its_place(tmp_path: Path, text: str, error: str) -> None:
    with pytest.raises(SettingsError, match=error):
        load(tmp_path, text)


def test_the_only_registry_of_the_settings_need_not_be_named(tmp_path: Path) -> None:
    registry = '[registries.main]\nurl = "http://127.0.0.1:8081"\n'
    settings = load(tmp_path, registry + '[topics.orders]\nformat = "avro"')
    assert settings.format_of("orders").registry == "main"
    assert settings.format_of("views").registry is None


def test_json_with_a_registry_has_the_frame_of_its_serializers(tmp_path: Path) -> None:
    registry = '[registries.main]\nurl = "http://127.0.0.1:8081"\n'
    section = '[topics.orders]\nformat = "json"\n'
    framed = load(tmp_path, registry + section + 'registry = "main"').format_of("orders")
    plain = load(tmp_path, registry + section + 'columns = { id = "long" }').format_of("orders")
    inferred = load(tmp_path, registry + section).format_of("orders")
    assert (inferred.has_schemas, inferred.encoding) == (False, "inferred json")
    assert (framed.has_schemas, framed.encoding) == (True, "framed json")
    assert (plain.has_schemas, plain.encoding, plain.registry) == (False, "json", None)


def test_paths_are_relative_to_the_settings_file(tmp_path: Path) -> None:
    protobuf = 'format = "protobuf"\nproto_file = "a.proto"\nproto_path = ["b", "/c"]\n'
    settings = load(
        tmp_path, f'[topics.orders]\n{protobuf}[topics.views]\nformat = "json"\njson_schema = "views.json"\n'
    )
    orders, views = settings.format_of("orders"), settings.format_of("views")
    assert (orders.schema_file, orders.proto_path) == (tmp_path / "a.proto", (str(tmp_path / "b"), "/c"))
    assert views.schema_file == tmp_path / "views.json"
    assert (orders.has_schemas, orders.registry, orders.encoding) == (False, None, "local protobuf")


# fault F14
@pytest.mark.parametrize(
    "frame", ["single_object", "glue:b7b4a7f0-9c96-4e4a-a687-fb5de9ef0c63", "azure:0123456789abcdef0123456789abcdef"]
)
def test_avro_values_with_a_schema_in_a_file_need_no_registry(tmp_path: Path, frame: str) -> None:
    plain = 'format = "avro"\navro_file = "a.avsc"\n'
    text = f'[topics.orders]\n{plain}[topics.views]\n{plain}avro_frame = "{frame}"\n'
    settings = load(tmp_path, '[registries.main]\nurl = "http://127.0.0.1:8081"\n' + text)
    orders, views = settings.format_of("orders"), settings.format_of("views")
    assert (orders.schema_file, orders.has_schemas, orders.registry) == (tmp_path / "a.avsc", False, None)
    assert (orders.encoding, views.encoding) == ("local avro", f"local avro {frame}")
