"""The settings file is checked when it is loaded. Errors name the file and the key."""

from pathlib import Path

import pytest

from resources.settings.settings import PATH_VARIABLE, Settings, SettingsError
from resources.settings.settings_reference import sections
from resources.settings.topic_formats import TopicFormat
from resources.settings.topic_sections import TopicRules

MINIMAL = """
lake = "lake"
[clusters.main]
zookeeper = "127.0.0.1:2181"
"""


def load(tmp_path: Path, text: str) -> Settings:
    file = tmp_path / "penstock.toml"
    file.write_text(text)
    return Settings.load(file)


def test_the_smallest_file_has_the_defaults(tmp_path: Path) -> None:
    settings = load(tmp_path, MINIMAL)
    assert settings.lake == str(tmp_path / "lake")
    assert settings.start_of("main") == "earliest"
    assert settings.rules("main").allows("anything")
    assert settings.spark == {}


def test_every_setting_is_read(tmp_path: Path) -> None:
    settings = load(
        tmp_path,
        """
        lake = "s3://bucket/lake"
        start = "latest"
        [lake_options]
        region = "eu"
        [clusters.main]
        zookeeper = "a:2181,b:2181/kafka"
        start = "earliest"
        topics.allow = "clicks"
        [clusters.other]
        bootstrap = "c:9092"
        [topics]
        allow = ["a.*", ""]
        deny = [".*_test"]
        [caps]
        bytes_per_run = 10
        [spark]
        master = "local[3]"
        "spark.driver.memory" = "2g"
        spark.executor.cores = 2
        spark.ui.enabled = false
        """,
    )
    assert settings.lake == "s3://bucket/lake"
    assert (settings.start_of("main"), settings.start_of("other")) == ("earliest", "latest")
    assert settings.rules("main").allows("clicks")
    assert not settings.rules("main").allows("abc")
    assert settings.rules("other").allows("abc")
    assert not settings.rules("other").allows("abc_test")
    assert settings.spark == {
        "master": "local[3]",
        "spark.driver.memory": "2g",
        "spark.executor.cores": "2",
        "spark.ui.enabled": "false",
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (MINIMAL.replace('lake = "lake"', ""), "lake is missing"),
        (MINIMAL.replace("lake =", "leak ="), "leak is not a setting; did you mean 'lake'?"),
        ("lak = 1\n" + MINIMAL, "lak is not a setting"),
        (MINIMAL.replace('lake = "lake"', "lake = 3"), "lake must be a text"),
        ('lake = "x"', "clusters is missing"),
        ('lake = "x"\n[clusters.main]\n', "clusters.main: set `zookeeper` or `bootstrap`"),
        (MINIMAL + "port = 3", "clusters.main.port is not a setting"),
        (MINIMAL.replace("main", "Main"), "clusters.Main: a name has"),
        (MINIMAL + '[topics]\nallow = ["("]', "topics.allow.0: '(' is not a regular expression"),
        (MINIMAL + "[caps]\nfetch_bytes = 0", "caps.fetch_bytes must be "),
        (MINIMAL + "[caps]\nfetch_bytes = 1_000_000_000", "caps.fetch_bytes is greater than caps.max_fetch_bytes"),
        (MINIMAL + '[spark]\nmaster = "a"\nremote = "b"', "spark: set `master` or `remote`, not both"),
        (MINIMAL.replace("zookeeper =", "start = 'middle'\nzookeeper ="), "clusters.main.start must be "),
        ("lake = ", "Invalid value"),
    ],
)
def test_an_error_names_the_file_and_the_key(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(SettingsError) as raised:
        load(tmp_path, text)
    assert str(tmp_path / "penstock.toml") in str(raised.value)
    assert message in str(raised.value)


NUMBERS = [
    (place, key.name)
    for section in sections(Settings)
    for place in section.places[:1]
    for key in section.keys
    if key.kind.startswith(("whole number", "number"))
]


@pytest.mark.parametrize("number", ["nan", "inf", "-inf", "1e300", "9" * 30, "9" * 5000])
@pytest.mark.parametrize(("place", "name"), NUMBERS)
def test_a_number_that_nothing_can_use_is_refused_with_its_key(
    place: str, name: str, number: str, tmp_path: Path
) -> None:  # fault U11
    section = place.replace("NAME", "main")
    pattern = 'topics = "a"\n' if section == "schedules.main" or section.startswith("schedules.main.") else ""
    text = {
        "": f"{name} = {number}\n{MINIMAL}",
        "clusters.main": f"{MINIMAL}\n{name} = {number}",
        "topics.main.state": f'{MINIMAL}\n[{section}]\nkey = "key"\n{name} = {number}',
    }.get(section, f"{MINIMAL}\n[schedules.main]\n{pattern}[{section}]\n{name} = {number}" if pattern else "")
    with pytest.raises(SettingsError) as raised:
        load(tmp_path, text or f"{MINIMAL}\n[{section}]\n{name} = {number}")
    sentence = str(raised.value)
    if len(number) == 5000:
        assert sentence.endswith("penstock.toml has a number that is too long, or lists in lists in too many levels")
    else:
        key = f"{section}.{name}".removeprefix(".")
        assert f"penstock.toml: {key} must be " in sentence or f"penstock.toml: {key} is too large" in sentence


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (MINIMAL.replace('lake = "lake"', "lake = 3"), "lake must be a text"),
        (MINIMAL + "[caps]\nattempts = 1.5", "caps.attempts must be a whole number"),
        (MINIMAL + '[caps]\nattempts = "x"', "caps.attempts must be a whole number"),
        (MINIMAL + "[caps]\nattempts = 0", "caps.attempts must be greater than 0"),
        (MINIMAL + "[choices]\non_expired = 'x'", "choices.on_expired must be 'fail' or 'skip'"),
        (MINIMAL + "generation = 'x'", "clusters.main.generation must be '0.7', '0.8-0.9' or 'modern'"),
        ("caps = 3\n" + MINIMAL, "caps must be a section"),
        ("lake = 'x'\nclusters = 3", "clusters must be a section"),
    ],
)
def test_a_wrong_value_is_a_sentence_of_ours(text: str, sentence: str, tmp_path: Path) -> None:  # fault U11
    with pytest.raises(SettingsError) as raised:
        load(tmp_path, text)
    assert sentence in str(raised.value)
    assert "Input should" not in str(raised.value)


def test_the_error_for_a_missing_file_says_how_to_name_it(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"there is no settings file .*PENSTOCK_SETTINGS"):
        Settings.load(tmp_path / "none.toml")


def test_the_path_can_come_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "other.toml").write_text(MINIMAL)
    monkeypatch.setenv(PATH_VARIABLE, str(tmp_path / "other.toml"))
    assert Settings.load().lake == str(tmp_path / "lake")


@pytest.mark.parametrize(
    ("allow", "deny", "topic", "allowed"),
    [
        ((".*",), (), "a", True),
        (("a",), (), "ab", False),
        ((".*",), ("a",), "a", False),
        (("",), (), "a", False),
        (("",), (), "", False),
        ((".*",), ("",), "a", True),
        ((), (), "a", False),
        ((".*",), (), "a\nb", True),
    ],
)
def test_deny_overrides_allow_and_an_empty_pattern_matches_nothing(
    allow: tuple[str, ...], deny: tuple[str, ...], topic: str, *, allowed: bool
) -> None:
    assert TopicRules(allow=allow, deny=deny).allows(topic) == allowed


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            'on_corrupt = "skip"',
            r"on_corrupt is not a setting of this section; it belongs to \[choices\] or \[clusters",
        ),
        ("caps.attempt = 1", "caps.attempt is not a setting; did you mean 'attempts'"),
        (
            "caps.cron = '@daily'",
            r"caps.cron is not .*; it belongs to the top of the file or \[housekeeping\] or \[schedules",
        ),
        ("clusters.main.lake = 'x'", r"clusters.main.lake is not .* it belongs to the top of the file$"),
    ],
)
def test_a_key_in_the_wrong_section_is_told_its_section(text: str, sentence: str, tmp_path: Path) -> None:  # fault F06
    file = tmp_path / "penstock.toml"
    file.write_text(f'{text}\nlake = "lake"\nclusters.main.bootstrap = "b:1"\n')
    with pytest.raises(SettingsError, match=sentence):
        Settings.load(file)


def test_a_file_may_begin_with_a_mark_of_utf_8(tmp_path: Path) -> None:  # fault F06
    file = tmp_path / "penstock.toml"
    schema = tmp_path / "schema.json"
    schema.write_text('{"type": "object", "properties": {"id": {"type": "integer"}}}', encoding="utf-8-sig")
    text = 'lake = "lake"\n[clusters.main]\nbootstrap = "b:1"\n'
    file.write_text(text, encoding="utf-8-sig")
    assert Settings.load(file).clusters["main"].bootstrap == "b:1"
    assert TopicFormat(format="json", json_schema=str(schema)).declared_columns().names == ["id"]
