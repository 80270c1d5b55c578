"""The codes 4xx: tables and the store of the lake."""

from resources.explanations.explanation import ExitCode, Explanation

_STORE = "incidents.md#the-disk-or-the-store-is-full-or-refuses"
_FILES = "incidents.md#data-files-of-the-table-are-lost"
_CHANGED = "incidents.md#somebody-changed-the-table"

TABLE_ERRORS = (
    Explanation(
        number=401,
        kind="LakeUnavailable",
        title="The store of the lake does not answer, or is full",
        meaning="Nothing of the failed step is visible in a table. The next load continues from the last commit.",
        causes="The disk is full or not mounted, the object store does not answer or answers with a temporary error, "
        "or the table was removed meanwhile.",
        repairs=(
            "Run the command again later. Dagster retries by itself, as set in `[retries]`.",
            "On a full disk, `penstock clean --all --delete` removes files that no table needs.",
            "`penstock config check` tests the lake: whether it answers, and whether this user can write.",
        ),
        page=_STORE,
        exit_code=ExitCode.TRY_AGAIN,
    ),
    Explanation(
        number=402,
        kind="LakeRefused",
        title="The store of the lake refuses",
        meaning="The store would refuse the same request again, so nothing was retried and nothing has changed.",
        causes="Credentials are wrong or have expired, a right or the bucket is missing, the store does not know the "
        "request, or this user cannot write to the folder.",
        repairs=(
            "Correct `lake`, `lake_options`, or the rights of the user in the store.",
            "Test it with `penstock config check`.",
        ),
        page=_STORE,
        exit_code=ExitCode.REFUSED,
    ),
    Explanation(
        number=403,
        kind="StoreUnsafe",
        title="The store could lose commits",
        meaning="The store lets a second writer replace an object that must be created only once. Penstock writes "
        "nothing there, because a commit could be lost without a sign.",
        causes="The store ignores the condition If-None-Match, or `lake_options` switch it off.",
        repairs=("Use a store that refuses to create an object twice, or correct `lake_options`.",),
        page="object-stores.md#what-must-a-store-be-able-to-do",
    ),
    Explanation(
        number=404,
        kind="LogTorn",
        title="The log of the table is damaged",
        meaning="An entry of the Delta log is incomplete or missing. Nothing was changed, because only the entries "
        "before it can be trusted.",
        causes="A power failure while an entry was written, or a tool that cleaned up old entries.",
        repairs=(
            "If it is the last entry, no load has reported it as committed: move the file away, and load again.",
            "Otherwise copy the entry back from a backup.",
            "Without a backup, remove the folder of the table and load the topic again.",
        ),
        page="operations.md#what-happens-after-a-power-failure",
    ),
    Explanation(
        number=405,
        kind="CommitRefused",
        title="Another run committed first",
        meaning="Nothing of this run is visible. What the other run loaded is in the table.",
        causes="Two loads of the topic ran at the same time, and their offsets overlap in a way that cannot be merged.",
        repairs=("Run the command again: it continues after the other run.",),
        page="operations.md#how-do-i-load-old-records",
        exit_code=ExitCode.TRY_AGAIN,
        also=("FilesChanged",),
    ),
    Explanation(
        number=406,
        kind="CommitUnknown",
        title="It is not known whether the commit succeeded",
        meaning="The store gave no answer to the commit, and the table cannot be read now. The commit is either "
        "completely visible or not at all.",
        causes="The store or the network failed at this moment.",
        repairs=("Run the command again: it reads the table first, and loads nothing twice.",),
        page=_STORE,
        exit_code=ExitCode.TRY_AGAIN,
    ),
    Explanation(
        number=407,
        kind="FileRefused",
        title="A data file is missing or has other contents",
        meaning="A file is not as the worker wrote it or as the commit recorded it.",
        causes="Somebody deleted or changed files of the table, two hosts see different folders under the same path, "
        "or the disk is damaged.",
        repairs=(
            "During a load: check that all workers write to the same lake, and load again.",
            (
                "In a table: `penstock verify TOPIC` lists the files, and `penstock replay TOPIC --from POINT --to "
                "POINT` fetches their records again."
            ),
        ),
        page=_FILES,
        exit_code=ExitCode.NOT_PROVEN,
    ),
    Explanation(
        number=408,
        kind="CursorMismatch",
        title="The cursor of the table and its newest commit differ",
        meaning="The table says two different things about what was loaded last, so no load continues it.",
        causes="Another program wrote to the table, or an old version was restored with a tool other than `penstock "
        "rewind`.",
        repairs=(
            "`penstock history TOPIC` shows who wrote last.",
            (
                "`penstock rewind TOPIC --version N` goes back to a version of Penstock, and the next load fetches the "
                "records again."
            ),
        ),
        page=_CHANGED,
        exit_code=ExitCode.NOT_PROVEN,
    ),
    Explanation(
        number=409,
        kind="TableNotProven",
        title="The rows of a table are not what its commits say",
        meaning="`penstock verify` found rows that are missing, there twice, or different. The message has the "
        "partition and the offsets.",
        causes="Somebody changed the table with another program (DELETE, UPDATE, a second loader), or data files are "
        "lost.",
        repairs=(
            "`penstock history TOPIC` lists all commits, also those of other programs.",
            "If the brokers still hold the records: `penstock replay TOPIC --from POINT --to POINT`.",
            "Otherwise `penstock rewind TOPIC --version N` goes back to the version before the change.",
            "If only the state table is wrong: `penstock state TOPIC --rebuild`.",
        ),
        page=_CHANGED,
        exit_code=ExitCode.NOT_PROVEN,
    ),
    Explanation(
        number=410,
        kind="TableMissing",
        title="The topic has no table yet",
        meaning="There is nothing to read or change.",
        causes="The topic was never loaded, or `lake` or the name of the cluster in the settings is another one.",
        repairs=("Load the topic first: `penstock load TOPIC`.", "Check `lake` with `penstock config show`."),
        page="tables.md#what-does-a-table-look-like",
    ),
    Explanation(
        number=411,
        kind="TableLost",
        title="The topic was loaded before, but its table is not there",
        meaning="A load would begin a second table, so it stopped. Nothing has changed.",
        causes="A disk is not mounted, `lake` leads to another place, the cluster has another name in the settings, or "
        "the table was deleted.",
        repairs=(
            "Correct `lake` or the name of the cluster in the settings, or mount the disk.",
            "If the table is really lost: `penstock load TOPIC --from earliest` loads all records into a new table.",
        ),
        page="operations.md#what-happens-when-a-log-and-its-table-are-inconsistent",
        exit_code=ExitCode.CHOICE_NEEDED,
    ),
    Explanation(
        number=412,
        kind="TableForeign",
        title="The table was not made for Penstock",
        meaning="The folder of the topic holds data of another program, or a property of the table would make it lose "
        "its ledger. Nothing was written.",
        causes="`lake` is a folder that another loader uses, or somebody set a property of Delta that cleans its log.",
        repairs=(
            "Choose another `lake`, or move the table away.",
            "If the message names a property, remove it from the table.",
        ),
        page="tables.md#what-does-a-table-look-like",
    ),
    Explanation(
        number=413,
        kind="TableReplaced",
        title="The table was removed during the run",
        meaning="Nothing of this run is visible.",
        causes="Somebody removed the folder of the table, or put another table in its place.",
        repairs=("Run the command again: it loads the topic into a new table, or continues the one that is there.",),
        page=_FILES,
    ),
    Explanation(
        number=414,
        kind="LayoutChanged",
        title="The settings want other folders than the table has",
        meaning="The folders of a table cannot change. Nothing was loaded.",
        causes="`partition_by` was changed after the first load.",
        repairs=(
            "Set `partition_by` back to the value in the message.",
            "Or move the table away, and load the topic into a new one.",
        ),
        page="layout.md#change-it",
        exit_code=ExitCode.CHOICE_NEEDED,
    ),
    Explanation(
        number=415,
        kind="FormatChanged",
        title="The settings want a typed table where a raw one is, or the reverse",
        meaning="Nothing was loaded.",
        causes="`format` was set or removed after the first load.",
        repairs=(
            "Set the former format again.",
            "Or make a raw table typed: `penstock redecode TOPIC --all`.",
        ),
        page="typed-tables.md#from-a-raw-table-to-a-typed-one",
        exit_code=ExitCode.CHOICE_NEEDED,
    ),
)
"""The rows, in the order of their numbers."""
