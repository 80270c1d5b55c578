"""The tables of topics as Delta tables: how versions are opened, and how ledger entries are committed to them.

**The door.** Only `pipelines.formats`, the outputs of increments and state tables import names of this room. All others
know a table by the interface `LakeTable` of `pipelines.table`. An import contract in `pyproject.toml` keeps it so.

**What the room guarantees.** A commit is the next version after its snapshot, or nothing of it is visible (faults L05,
L06). It is not reported before it is visible, and before it is on disk where there is a disk (faults L03, L10). No
commit creates a table again that was removed (fault P07), and no commit file is ever deleted (fault P06). A version
that cannot be understood completely is refused: deletion vectors, column mapping, `txn` actions that
expire (faults P05, L15).

**What it reads itself.** A JSON commit file for each version, classic checkpoints of one file, and the pointer to the
newest one, up to version 3 of Delta's protocol for readers. It writes a commit itself if the commit only adds files and
columns, up to version 2 of the protocol for writers, or version 7 with features that ask nothing of such a commit. For
everything else it uses deltalake: other checkpoints and protocols, the files and rows of a version, commits that take
files out of the table, and writing checkpoints.

**What depends on this deltalake.** `deltalake<2` is pinned in `pyproject.toml`, because the room relies on what no
documentation promises. `table_copy` uses the private `_table`. `writes` adds
columns by an overwrite that removes no file. A handle refuses to commit after a newer `txn` that it has not seen
(decision D14). Tests in `tests/pipelines/delta` fail if a new version of deltalake differs.
"""
