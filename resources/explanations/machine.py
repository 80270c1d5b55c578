"""The codes 7xx and 9xx: the machine, and unexpected ends."""

from resources.explanations.explanation import ExitCode, Explanation

_CHECK = "operations.md#how-do-i-see-whether-all-is-well"
_PACKAGES = "install.md#which-packages-do-i-need"

MACHINE_ERRORS = (
    Explanation(
        number=701,
        kind="ExtraMissing",
        title="A package is not installed",
        meaning="The command needs a package that belongs to an extra of Penstock.",
        causes="Penstock was installed without this extra, or in another environment.",
        repairs=("Install the extra with pip, as the message says.",),
        page=_PACKAGES,
    ),
    Explanation(
        number=702,
        kind="JavaNotFound",
        title="There is no Java",
        meaning="Spark and the embedded ZooKeeper need Java 17 or later. Small loads need neither.",
        causes="Java is not installed, is too old, or JAVA_HOME leads to another version.",
        repairs=(
            "Install Java 17 or later, or the extra `spark`, which brings one.",
            "Correct JAVA_HOME if it is set.",
        ),
        page=_PACKAGES,
    ),
    Explanation(
        number=703,
        kind="CacheUnsafe",
        title="Other users can write to the folder of Java",
        meaning="Penstock starts no program from a folder that others can change.",
        causes="The mode of the folder allows it.",
        repairs=("Set the mode of the folder to 700, or set XDG_CACHE_HOME to a folder of this user.",),
        page=_CHECK,
    ),
    Explanation(
        number=704,
        kind="SparkFailed",
        title="Spark could not run the load",
        meaning="Nothing of the failed step is visible. The next load continues from the last commit.",
        causes="Spark does not start with these settings, it has no worker for the load, or a worker died several "
        "times, often because it lacked memory.",
        repairs=(
            "Check the section `[spark]` of the settings with `penstock config check`.",
            "If workers lack memory, give them more, or lower `caps.slice_decoded_bytes`.",
            "`--debug` with the same command shows Spark's own reason.",
        ),
        page="spark.md#what-happens-when-something-dies",
        exit_code=ExitCode.TRY_AGAIN,
    ),
    Explanation(
        number=705,
        kind="SpaceShort",
        title="A disk is almost full",
        meaning="Loads will soon fail.",
        causes="Tables grew, or temporary files and old files of tables were not deleted.",
        repairs=("`penstock clean --all --delete` removes files that no table needs.", "Free space on this disk."),
        page="incidents.md#the-disk-or-the-store-is-full-or-refuses",
    ),
    Explanation(
        number=706,
        kind="ClockWrong",
        title="A clock is wrong",
        meaning="Times that Penstock compares, such as lateness and time left, are wrong.",
        causes="This machine, the store or the producers have another time.",
        repairs=("Synchronise the clocks with NTP, for example with timedatectl set-ntp true.",),
        page=_CHECK,
    ),
    Explanation(
        number=707,
        kind="StorageUnusable",
        title="Dagster cannot use its storage",
        meaning="Dagster cannot store runs and events, so it does not start loads. Tables are not affected.",
        causes="DAGSTER_HOME is wrong, the database does not answer, or it is of another version.",
        repairs=("Correct `storage` in dagster.yaml, start its database, or run `dagster instance migrate`.",),
        page="dagster-production.md#where-does-dagster-store-runs-and-events",
    ),
    Explanation(
        number=708,
        kind="ZooKeeperNotStarted",
        title="The embedded ZooKeeper did not start",
        meaning="The server ended, or did not accept sessions in time.",
        causes="The port is in use, or Java fails. The message names its log.",
        repairs=("Read the log that the message names, or choose another port.",),
        page="start.md#which-commands-are-there",
    ),
    Explanation(
        number=709,
        kind="DataDirInUse",
        title="Another embedded broker uses this folder",
        meaning="The broker did not start, so that two brokers do not write the same log.",
        causes="A broker with this folder is running.",
        repairs=("Stop the other broker, or choose another `--data-dir`.",),
        page="start.md#which-commands-are-there",
    ),
    Explanation(
        number=710,
        kind="FileNotFoundError",
        title="A file does not exist",
        meaning="A file that the settings or the command line name cannot be opened.",
        causes="The path is wrong, or a disk is not mounted. Paths in the settings are relative to the settings file.",
        repairs=("Create the file, or correct its path.",),
        page="start.md#how-do-i-configure-it",
    ),
    Explanation(
        number=711,
        kind="PermissionError",
        title="The operating system denies access to a file",
        meaning="This user may not read or write the file that the message names.",
        causes="The file belongs to another user, for example of a service.",
        repairs=("Let this user read or write it, or run the command as the user of the service.",),
        page=_CHECK,
        exit_code=ExitCode.REFUSED,
    ),
    Explanation(
        number=712,
        kind="OSError",
        title="The operating system refuses",
        meaning="A file, a disk or an address cannot be used. The message has the reason of the system.",
        causes="The disk is full or damaged, too many files are open, or an address is in use.",
        repairs=("Remove the reason that the message names, and run the command again.",),
        page="incidents.md#the-disk-or-the-store-is-full-or-refuses",
    ),
    Explanation(
        number=713,
        kind="MemoryError",
        title="The process has no more memory",
        meaning="Nothing of the failed step is visible. The next load continues from the last commit.",
        causes="Batches or slices are larger than the memory of this machine or container allows.",
        repairs=(
            "Lower `caps.slice_decoded_bytes`, `caps.driver_slices` or `caps.max_decompressed_bytes`.",
            "Or give the process more memory.",
        ),
        page="spark.md#how-much-memory-does-a-task-need",
    ),
)
"""The rows about the machine, in the order of their numbers."""

UNEXPECTED_ENDS = (
    Explanation(
        number=901,
        kind="BaseException",
        title="An unexpected error",
        meaning="Penstock has no sentence for this error. Tables stay as the last commit left them.",
        causes="A fault in Penstock or in a library, or a situation that nobody has met yet.",
        repairs=(
            "`--debug` with the same command shows the details.",
            "Please report it with these details.",
        ),
        page=_CHECK,
    ),
    Explanation(
        number=902,
        kind="KeyboardInterrupt",
        title="The command was interrupted",
        meaning="What was committed stays. The next load continues there.",
        causes="Ctrl-C or SIGINT, or the end of a question without an answer.",
        repairs=("Run the command again when you like.",),
        page="operations.md#how-does-a-run-load-many-topics",
        exit_code=ExitCode.INTERRUPTED,
        also=("Abort",),
    ),
)
"""The rows about unexpected ends, in the order of their numbers."""
