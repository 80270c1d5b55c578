"""Old names of settings are read with a warning that names the new one. Both names of a setting are an error."""

from pathlib import Path

import pytest

from resources.settings.settings import Settings, SettingsError
from resources.settings.settings_shown import shown

TOP = 'lake = "lake"\n[clusters.main]\nbootstrap = "127.0.0.1:1"\n'
OLD = f"""{TOP}
[topics.orders]
group = "sales"
[topics."views.*"]
group = "web"
[groups.fast]
topics = "clicks"
cron = "* * * * *"
"""
NEW = OLD.replace("[groups.", "[schedules.").replace("group =", "asset_group =")


def load(folder: Path, text: str) -> Settings:
    file = folder / "penstock.toml"
    file.write_text(text)
    return Settings.load(file)


def test_an_old_name_means_what_the_new_one_means(tmp_path: Path) -> None:
    old, new = load(tmp_path, OLD), load(tmp_path, NEW)
    assert shown(old) == shown(new)
    assert (new.schedule_of("main", "clicks"), new.options_of("orders").catalog.asset_group) == ("fast", "sales")


def test_a_warning_names_the_old_and_the_new_name(tmp_path: Path) -> None:
    assert load(tmp_path, OLD).warnings == (
        "groups is the old name of schedules: rename it in the settings",
        "topics.orders.group is the old name of topics.orders.asset_group: rename it in the settings",
        "topics.views.*.group is the old name of topics.views.*.asset_group: rename it in the settings",
    )
    assert load(tmp_path, NEW).warnings == ()


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (
            '[groups.a]\ntopics = "a"\n[schedules.b]\ntopics = "b"',
            "groups is the old name of schedules: use only",
        ),
        (
            '[topics.orders]\ngroup = "a"\nasset_group = "a"',
            "topics.orders.group is the old name of topics.orders.asset_group: use only topics.orders.asset_group",
        ),
    ],
)
def test_the_old_and_the_new_name_of_a_setting_are_an_error(tmp_path: Path, text: str, error: str) -> None:
    with pytest.raises(SettingsError, match=f"penstock.toml: {error}"):
        load(tmp_path, TOP + text)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("groups = 3", "schedules must be a section"),
        ("topics = 3", "topics must be a section"),
        ("topics.group = 3", "topics.group is not a setting"),
        ("topics.orders = 3", "topics.orders is not a setting"),
        ('topics.orders.asset_grup = "a"', "topics.orders.asset_grup is not a setting; did you mean 'asset_group'"),
        ('topics.orders.catalog = "a"', "topics.orders.catalog is not a setting"),
        ('topics.orders.columms = {id = "long"}', "topics.orders.columms is not a setting; did you mean 'columns'"),
        ("topics.orders.audit_hour = 3", "topics.orders.audit_hour is not a setting; did you mean 'audit_hours'"),
        ("topics.orders.state.kee = 3", "topics.orders.state.kee is not a setting; did you mean 'key'"),
    ],
)
def test_a_wrong_section_is_named_as_it_is_in_the_file(tmp_path: Path, text: str, error: str) -> None:
    with pytest.raises(SettingsError, match=error):
        load(tmp_path, f"{text}\n{TOP}")
