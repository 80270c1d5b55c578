"""How every Delta table of Penstock is written by deltalake: the tables of topics, state tables and outputs."""

from deltalake import PostCommitHookProperties, WriterProperties

AFTER_COMMIT = PostCommitHookProperties(cleanup_expired_logs=False)
"""After a commit of Penstock, deltalake may write a checkpoint. It never deletes commit files (fault P06)."""
AFTER_ENTRY = PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)
"""After the commit of a ledger entry, `DeltaLakeTable.write` decides about the checkpoint."""
WRITING = WriterProperties(compression="ZSTD", compression_level=1)
"""The options for files that deltalake writes, when rows are replaced or files are merged."""
LOG_CLEANUP = "delta.enableExpiredLogCleanup"
CONFIGURATION = {
    # The delta log is the ledger: no writer may delete old commits of it (fault P06).
    LOG_CLEANUP: "false",
}
"""The properties of every table."""
