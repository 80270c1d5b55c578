"""The tables of topics as Iceberg tables in a catalog: how snapshots are opened, and how ledger entries are committed.

**What the room guarantees.** A commit is one request to the catalog. It requires the table's uuid, the snapshot on
which it was planned as the newest one, and the tag `penstock` on Penstock's newest snapshot. So it is the next snapshot
after the planned one, or nothing of it is visible. No answer of a catalog says that a commit failed: whoever gets an
error reads the table and looks for its snapshot. Nothing is deleted after an error.

**Versions** are the sequence numbers of snapshots, which grow by one with each commit of anybody. A snapshot may
expire, and its ledger entry stays (`stored_ledger`). docs/iceberg.md says what is missing.
"""
