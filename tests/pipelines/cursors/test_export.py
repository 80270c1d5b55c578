"""Export of cursors to a consumer group, where other clients see them."""

from tests.pipelines.cursors.conftest import Stand


def test_other_clients_see_the_committed_cursors(stand: Stand) -> None:
    stand.topic.load()
    result = stand("offsets", "export", "clicks", "--write", "--group", "watch")
    assert result.exit_code == 0, result.output
    assert stand.committed("watch") == {0: 30, 1: 30, 2: 30}


def test_the_default_group_is_that_of_the_settings(stand: Stand) -> None:
    stand.topic.load()
    stand.configure('mirror_group = "lake"')
    assert stand("offsets", "export", "--all", "--write").exit_code == 0
    assert stand.committed("lake") == {0: 30, 1: 30, 2: 30}


def test_a_storage_that_the_cluster_does_not_have_is_refused(stand: Stand) -> None:
    stand.topic.load()
    result = stand("offsets", "export", "clicks", "--write", "--group", "watch", "--storage", "zookeeper")
    assert result.exit_code == 1
    assert "Unsupported: this cluster was opened without a ZooKeeper" in result.stderr


def test_an_exported_group_can_be_imported(stand: Stand) -> None:
    stand.topic.load()
    stand("offsets", "export", "clicks", "--write", "--group", "watch")
    stand.publish(30, start=90)
    rows = stand.topic.rows()
    (stand.home / "lake").rename(stand.home / "kept")
    assert stand("offsets", "import", "clicks", "--from", "group:watch").exit_code == 0
    assert stand.topic.load().rows == 30
    assert not set(rows) & set(stand.topic.rows())
