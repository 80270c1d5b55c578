"""The table of codes: one row per error. It finds the row of an error, of a code, and of what a user types."""

import builtins
import re
from collections.abc import Iterable, Mapping

from resources.explanations.explanation import CodeRow, ExitCode

_ROWS = (
    CodeRow(101, "SettingsError", ExitCode.WRONG_USE),
    CodeRow(102, "UsageError", ExitCode.WRONG_USE),
    CodeRow(103, "ClickException"),
    CodeRow(104, "TopicUnknown"),
    CodeRow(105, "TailRefused", ExitCode.WRONG_USE),
    CodeRow(106, "SecretMissing", ExitCode.WRONG_USE),
    CodeRow(107, "EventTimeUnknown"),
    CodeRow(108, "AuditUnknown"),
    CodeRow(109, "OffsetsUnreadable"),
    CodeRow(110, "ImportRefused"),
    CodeRow(111, "RewindRefused"),
    CodeRow(112, "ReplayRefused"),
    CodeRow(113, "RedecodeRefused"),
    CodeRow(114, "LayoutRefused", ExitCode.WRONG_USE),
    CodeRow(115, "ConditionInvalid", ExitCode.WRONG_USE),
    CodeRow(116, "EraseRefused"),
    CodeRow(117, "ErasedSince"),
    CodeRow(201, "ConnectFailed", ExitCode.TRY_AGAIN),
    CodeRow(202, "ConnectionLost", ExitCode.TRY_AGAIN, also=("NetworkError",)),
    CodeRow(203, "DeadlineExceeded", ExitCode.TRY_AGAIN),
    CodeRow(204, "LeaderMoved", ExitCode.TRY_AGAIN, also=("LeaderChanged",)),
    CodeRow(205, "CoordinatorMoved", ExitCode.TRY_AGAIN),
    CodeRow(206, "BrokerBusy", ExitCode.TRY_AGAIN),
    CodeRow(207, "BrokerRefused"),
    CodeRow(208, "Throttled"),
    CodeRow(209, "BrokerError"),
    CodeRow(210, "TlsFailed", ExitCode.REFUSED),
    CodeRow(211, "AuthenticationFailed", ExitCode.REFUSED),
    CodeRow(212, "AuthorizationFailed", ExitCode.REFUSED),
    CodeRow(213, "RightsMissing", ExitCode.REFUSED),
    CodeRow(214, "TokenServerUnavailable", ExitCode.TRY_AGAIN),
    CodeRow(215, "Unsupported"),
    CodeRow(216, "RegistryUnavailable", ExitCode.TRY_AGAIN),
    CodeRow(217, "RegistryError"),
    CodeRow(218, "NodeMalformed"),
    CodeRow(219, "NodeVanished"),
    CodeRow(220, "SchemaRegistryUnavailable", ExitCode.TRY_AGAIN),
    CodeRow(221, "SchemaRegistryError"),
    CodeRow(222, "Truncated"),
    CodeRow(223, "QueueFull", ExitCode.TRY_AGAIN),
    CodeRow(224, "ProducerClosed"),
    CodeRow(225, "Undelivered"),
    CodeRow(226, "TransactionError"),
    CodeRow(227, "KdcUnreachable", ExitCode.TRY_AGAIN),
    CodeRow(228, "KerberosTicketMissing", ExitCode.REFUSED),
    CodeRow(229, "KeytabUnusable", ExitCode.REFUSED),
    CodeRow(230, "KerberosClockSkew", ExitCode.REFUSED),
    CodeRow(231, "KerberosPrincipalUnknown", ExitCode.REFUSED),
    CodeRow(232, "KerberosRealmUnknown", ExitCode.REFUSED),
    CodeRow(301, "CursorExpired", ExitCode.CHOICE_NEEDED),
    CodeRow(302, "CursorAheadOfLog", ExitCode.CHOICE_NEEDED),
    CodeRow(303, "LogTruncated", ExitCode.CHOICE_NEEDED),
    CodeRow(304, "TopicRecreated", ExitCode.CHOICE_NEEDED),
    CodeRow(305, "TopicReplaced"),
    CodeRow(306, "OffsetsMissing", ExitCode.CHOICE_NEEDED),
    CodeRow(307, "Corrupt", ExitCode.CHOICE_NEEDED),
    CodeRow(308, "TooLarge", ExitCode.CHOICE_NEEDED),
    CodeRow(309, "PartitionsVanished", ExitCode.CHOICE_NEEDED),
    CodeRow(310, "ClusterChanged", ExitCode.CHOICE_NEEDED),
    CodeRow(311, "OffsetOutOfRange"),
    CodeRow(312, "LogShort", ExitCode.TRY_AGAIN),
    CodeRow(313, "PastEnd", ExitCode.TRY_AGAIN),
    CodeRow(401, "LakeUnavailable", ExitCode.TRY_AGAIN),
    CodeRow(402, "LakeRefused", ExitCode.REFUSED),
    CodeRow(403, "StoreUnsafe"),
    CodeRow(404, "LogTorn"),
    CodeRow(405, "CommitRefused", ExitCode.TRY_AGAIN, also=("FilesChanged", "TableMoved")),
    CodeRow(406, "CommitUnknown", ExitCode.TRY_AGAIN),
    CodeRow(407, "FileRefused", ExitCode.NOT_PROVEN),
    CodeRow(408, "CursorMismatch", ExitCode.NOT_PROVEN),
    CodeRow(409, "TableNotProven", ExitCode.NOT_PROVEN),
    CodeRow(410, "TableMissing"),
    CodeRow(411, "TableLost", ExitCode.CHOICE_NEEDED),
    CodeRow(412, "TableForeign"),
    CodeRow(413, "TableReplaced"),
    CodeRow(414, "LayoutChanged", ExitCode.CHOICE_NEEDED),
    CodeRow(415, "FormatChanged", ExitCode.CHOICE_NEEDED),
    CodeRow(416, "EntryUnknown"),
    CodeRow(417, "ExactSetLost", ExitCode.NOT_PROVEN),
    CodeRow(501, "BadRecords", ExitCode.CHOICE_NEEDED),
    CodeRow(502, "TooManyColumns", ExitCode.CHOICE_NEEDED),
    CodeRow(503, "InvalidSchema"),
    CodeRow(504, "SchemaNotFound"),
    CodeRow(505, "InvalidValue"),
    CodeRow(506, "SchemaChanged", ExitCode.CHOICE_NEEDED),
    CodeRow(507, "RulesChanged", ExitCode.CHOICE_NEEDED),
    CodeRow(508, "RewriteRefused", ExitCode.CHOICE_NEEDED),
    CodeRow(509, "TooManySkipped", ExitCode.CHOICE_NEEDED),
    CodeRow(510, "RoutesChanged", ExitCode.CHOICE_NEEDED),
    CodeRow(511, "RouteUnknown", ExitCode.CHOICE_NEEDED),
    CodeRow(601, "IncrementOvertaken", ExitCode.TRY_AGAIN),
    CodeRow(602, "RowsReplaced", ExitCode.CHOICE_NEEDED),
    CodeRow(603, "SourceChanged", ExitCode.CHOICE_NEEDED),
    CodeRow(604, "SourceLogCleaned", ExitCode.CHOICE_NEEDED),
    CodeRow(605, "SourceFilesCleaned", ExitCode.CHOICE_NEEDED),
    CodeRow(606, "OutputRefused"),
    CodeRow(607, "OutputBusy", ExitCode.TRY_AGAIN),
    CodeRow(608, "MetricsNotWritten", ExitCode.TRY_AGAIN),
    CodeRow(609, "LineageFailed"),
    CodeRow(610, "RowsRetired", ExitCode.CHOICE_NEEDED),
    CodeRow(701, "ExtraMissing"),
    CodeRow(702, "JavaNotFound"),
    CodeRow(703, "CacheUnsafe"),
    CodeRow(704, "SparkFailed", ExitCode.TRY_AGAIN),
    CodeRow(705, "SpaceShort"),
    CodeRow(706, "ClockWrong"),
    CodeRow(707, "StorageUnusable"),
    CodeRow(708, "ZooKeeperNotStarted"),
    CodeRow(709, "DataDirInUse"),
    CodeRow(710, "FileNotFoundError"),
    CodeRow(711, "PermissionError", ExitCode.REFUSED),
    CodeRow(712, "OSError"),
    CodeRow(713, "MemoryError"),
    CodeRow(901, "BaseException"),
    CodeRow(902, "KeyboardInterrupt", ExitCode.INTERRUPTED, also=("Abort",)),
)
ROWS: Mapping[str, CodeRow] = {row.code: row for row in _ROWS}
"""All rows by code, in the order of the codes. The texts about them are in the files beside this one."""
RETIRED: Mapping[str, str] = {}
"""Codes of errors that no longer exist, with the sentence that says what became of them. They are never used again."""

UNEXPECTED = "PS-901"
"""The code of errors for which the table has no row of their own."""

_BY_KIND = {kind: row for row in _ROWS for kind in row.kinds}
_TYPED_CODE = re.compile(r"(?:ps)?[-_ ]?(\d{3})", re.IGNORECASE)


def row_of(error: type[BaseException]) -> CodeRow:
    """The row of a class of errors. A class without a row has the row of its nearest base."""
    return next(_BY_KIND[base.__name__] for base in error.__mro__ if base.__name__ in _BY_KIND)


def code_of(error: type[BaseException]) -> str:
    """The code of a class of errors.

    >>> code_of(FileNotFoundError), code_of(KeyError)
    ('PS-710', 'PS-901')
    """
    return row_of(error).code


def code_of_kind(kind: str) -> str:
    """The code of an error of which only the name of its class is known."""
    return _known_code(kind) or UNEXPECTED


def _known_code(kind: str) -> str | None:
    """The code of an error in the table, or of an error of Python; None for another name."""
    if kind in _BY_KIND:
        return _BY_KIND[kind].code
    builtin = getattr(builtins, kind, None)
    return code_of(builtin) if isinstance(builtin, type) and issubclass(builtin, BaseException) else None


def coded(sentence: str, code: str | None) -> str:
    """A sentence with the code of its error at the end, as all messages have it.

    >>> coded("offsets expired", "PS-301")
    'offsets expired (PS-301)'
    """
    return f"{sentence} ({code})" if code else sentence


def exit_code_of(codes: Iterable[str]) -> ExitCode:
    """The exit code of a command that ends with errors of these codes: of their kind, or 1 if there are several kinds.

    >>> exit_code_of(["PS-201", "PS-203"]), exit_code_of(["PS-201", "PS-301"]), exit_code_of([])
    (<ExitCode.TRY_AGAIN: 3>, <ExitCode.FAILED: 1>, <ExitCode.SUCCESS: 0>)
    """
    return combined({ROWS[code].exit_code for code in codes})


def combined(exit_codes: Iterable[ExitCode]) -> ExitCode:
    """The exit code of a command whose parts would end with these."""
    failures = set(exit_codes) - {ExitCode.SUCCESS}
    if not failures:
        return ExitCode.SUCCESS
    return failures.pop() if len(failures) == 1 else ExitCode.FAILED


def typed_code(text: str) -> str:
    """The code that a user means: `ps-301`, `301`, or the name of a class. Another text is returned as it is.

    >>> typed_code("301"), typed_code("ps-301"), typed_code("cursorexpired"), typed_code("nonsense")
    ('PS-301', 'PS-301', 'PS-301', 'nonsense')
    """
    word = text.strip()
    number = _TYPED_CODE.fullmatch(word)
    if number:
        return f"PS-{number[1]}"
    by_lower_name = {kind.lower(): row.code for kind, row in _BY_KIND.items()}
    return by_lower_name.get(word.lower()) or _known_code(word) or text
