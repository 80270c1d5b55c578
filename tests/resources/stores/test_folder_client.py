"""Files of a local disk through the methods of ObjectClient: whole or absent, created once, listed in order."""

import errno
from pathlib import Path
from unittest.mock import patch

import pytest

from resources.stores.folder_client import FolderClient


@pytest.fixture
def client(tmp_path: Path) -> FolderClient:
    (tmp_path / "log").mkdir()
    return FolderClient(tmp_path)


def names(client: FolderClient) -> list[str]:
    return sorted(path.name for path in (client.root / "log").iterdir())


def test_a_file_is_created_once(client: FolderClient) -> None:
    mark = client.create("log/entry", b"first")
    with pytest.raises(FileExistsError):
        client.create("log/entry", b"second")
    stored = client.read("log/entry")
    assert (stored.path, stored.content, stored.e_tag) == ("log/entry", b"first", mark)
    assert names(client) == ["entry"]


def test_a_file_is_replaced_as_a_whole(client: FolderClient) -> None:
    mark = client.write("log/pointer", b"first")
    assert client.write("log/pointer", b"other") != mark
    assert client.read("log/pointer").content == b"other"
    assert names(client) == ["pointer"]


def test_the_folder_of_a_new_file_must_exist(client: FolderClient) -> None:  # fault P07
    with pytest.raises(FileNotFoundError):
        client.create("removed/entry", b"content")
    assert not (client.root / "removed").exists()


def test_a_full_disk_leaves_no_part_of_a_file(client: FolderClient) -> None:
    def fill(path: Path, content: bytes) -> int:
        with path.open("wb") as file:
            file.write(content[:3])
        raise OSError(errno.ENOSPC, "No space left on device")

    with patch.object(Path, "write_bytes", fill), pytest.raises(OSError, match="No space left"):
        client.create("log/entry", b"content")
    assert names(client) == []


def test_a_listing_begins_after_a_path_and_is_in_order(client: FolderClient) -> None:
    marks = {name: client.create(f"log/{name}", b"") for name in ("2", "3", "1")}
    (client.root / "log" / "below").mkdir()
    client.create("log/below/4", b"")
    listed = list(client.list("log", after="log/1"))
    assert [stored.path for stored in listed] == ["log/2", "log/3", "log/below/4"]
    assert [stored.e_tag for stored in listed[:2]] == [marks["2"], marks["3"]]
    assert not list(client.list("nothing"))


def test_a_file_that_is_removed_during_a_listing_is_left_out(client: FolderClient) -> None:
    for name in ("1", "2"):
        client.create(f"log/{name}", b"")
    listing = client.list("log")
    assert next(listing).path == "log/1"
    (client.root / "log" / "2").unlink()
    assert list(listing) == []


def test_files_are_read_in_the_order_of_their_paths(client: FolderClient) -> None:
    for name in ("1", "2"):
        client.create(f"log/{name}", name.encode())
    assert [stored.content for stored in client.read_all(["log/2", "log/1"])] == [b"2", b"1"]
    with pytest.raises(FileNotFoundError):
        client.read_all(["log/1", "log/3"])
