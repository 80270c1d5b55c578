"""Cursors are written to a group, where clients of others see them."""

from tests.pipelines.offsets.conftest import Stand


def test_clients_of_others_see_what_is_written(stand: Stand) -> None:
    stand.topic.load()
    done = stand("offsets", "export", "clicks", "--write", "--group", "watch")
    assert done.exit_code == 0, done.output
    assert stand.committed("watch") == {0: 30, 1: 30, 2: 30}


def test_the_group_of_the_settings_is_meant_where_none_is_named(stand: Stand) -> None:
    stand.topic.load()
    stand.configure('mirror_group = "lake"')
    assert stand("offsets", "export", "--all", "--write").exit_code == 0
    assert stand.committed("lake") == {0: 30, 1: 30, 2: 30}


def test_a_store_that_the_cluster_has_not_is_refused(stand: Stand) -> None:
    stand.topic.load()
    done = stand("offsets", "export", "clicks", "--write", "--group", "watch", "--storage", "zookeeper")
    assert done.exit_code == 1
    assert "Unsupported: this cluster keeps no offsets by zookeeper" in done.stderr


def test_a_group_comes_back_as_it_was_exported(stand: Stand) -> None:
    stand.topic.load()
    stand("offsets", "export", "clicks", "--write", "--group", "watch")
    stand.publish(30, start=90)
    rows = stand.topic.rows()
    (stand.home / "lake").rename(stand.home / "kept")
    assert stand("offsets", "import", "clicks", "--from", "group:watch").exit_code == 0
    assert stand.topic.load().rows == 30
    assert not set(rows) & set(stand.topic.rows())
