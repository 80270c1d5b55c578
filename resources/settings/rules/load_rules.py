"""The section `[topics.NAME.load]`: what a load stores of the records. The keys of its hashes are in `[secrets]`."""

import re
from collections.abc import Mapping
from itertools import permutations
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo, model_validator

from kafka_io.net.secret import SecretReference
from resources.settings.schedules import Share, Texts
from resources.settings.section import Section, absolute_path, with_dotted_names

KEEP, DROP = "keep", "drop"
HASH_PREFIX = "hash:"
_OWN_PREFIX = "_kafka_"
_FILE = "file:"
_Constant = bool | int | float | str


def _with_absolute_path(reference: Any, info: ValidationInfo) -> Any:
    if not isinstance(reference, str) or not reference.startswith(_FILE) or reference == _FILE:
        return reference
    # Symbolic links stay unresolved, as in all references to secrets.
    return f"{_FILE}{absolute_path(reference.removeprefix(_FILE), info)}"


class HashSecret(Section):
    """A key of hashes, for `hash` and `key` in `[topics.NAME.load]`."""

    id: str = Field(pattern=r"^[A-Za-z0-9_-]{1,32}$")
    """The beginning of each hash that is made with the key: `k1` makes `k1:9f86d081...`. Another key needs another id,
    so that hashes of two keys are never taken for equal."""

    key: Annotated[SecretReference, BeforeValidator(_with_absolute_path)]
    """Where each process that loads finds the key, of at least 16 bytes. All processes must find the same one."""


def _key_rule(rule: str) -> str:
    if not re.fullmatch(rf"{KEEP}|{DROP}|{HASH_PREFIX}.+", rule):
        raise ValueError('write "keep", "drop", or "hash:" with a name of [secrets]')
    return rule


class LoadRules(Section):
    """What a load stores of the records. See docs/what-is-stored.md.

    A path is the name of a field. A point leads to a field inside it, and the items of lists and the values of maps
    need no name. Upper and lower case do not matter.
    """

    drop: Texts = ()
    """Typed tables: paths of fields that are not stored. They have no column."""

    mask: Annotated[dict[str, _Constant], BeforeValidator(with_dotted_names)] = Field(default={})
    """Typed tables: paths of fields, with the constant that is stored in the place of each value: a text, a number, or
    true or false. The column has the type of the constant. Null stays null."""

    hash: Annotated[dict[str, str], BeforeValidator(with_dotted_names)] = Field(default={})
    """Typed tables: paths of fields, with the NAME of the section `[secrets.NAME]` with the key of their hashes. The
    column is a text such as `k1:9f86d0818884c7d6...`: the id of the key, and 128 bits of HMAC-SHA256. Null stays
    null."""

    key: Annotated[str, AfterValidator(_key_rule)] = KEEP
    """What is stored of the keys of records: "keep", "drop", or "hash:NAME" for hashes as above. It applies to the
    bytes of the key, and to the columns of a `key_format`."""

    headers: Texts | None = None
    """The headers of records that are stored. All by default. Headers that name schemas are always stored:
    `__value_schema_id`, `__key_schema_id`, and Azure's `content-type`."""

    raw: Literal["keep", "drop"] | None = None
    """Typed tables: whether the bytes of records that do not decode are stored. They contain all fields, so by default
    they are not stored if `drop`, `mask`, `hash` or `key` is set. Without them `penstock redecode` cannot decode these
    records again."""

    skip: str | None = Field(default=None, min_length=1)
    """A condition: records for which it is true have no row, for example `type = 'heartbeat'`. It compares fields of
    values as they are before `drop`, `mask` and `hash`, `_kafka_key`, `_kafka_timestamp`, `_tombstone`, or
    `header('NAME')`; in raw tables `key` and `header('NAME')`. See docs/what-is-stored.md."""

    max_skipped_share: Share = 0.5
    """The maximum share of records that `skip` may leave out in one run, if the run has at least 1,000 records. A load
    or replay with more fails before its commit, because a typing mistake must not empty a table. 1 allows all."""

    @model_validator(mode="after")
    def _has_distinct_paths(self) -> "LoadRules":
        paths = [path.casefold() for path in (*self.drop, *self.mask, *self.hash)]
        for path in paths:
            if path.startswith(_OWN_PREFIX):
                raise ValueError(f"{path} is no field of a value; `key` and `headers` say what is stored of the record")
            if not all(path.split(".")):
                raise ValueError(f"{path!r} is not a path: write names with a point between them")
        for path, other in permutations(paths, 2):
            if path == other:
                raise ValueError(f"the field {path} has two rules")
            if path.startswith(f"{other}."):
                raise ValueError(f"the field {path} is inside of {other}, which has a rule already")
        return self

    @property
    def secrets(self) -> frozenset[str]:
        """The names of the secrets that the rules need."""
        of_key = {self.key.removeprefix(HASH_PREFIX)} if self.key.startswith(HASH_PREFIX) else set[str]()
        return frozenset(self.hash.values()) | of_key

    @property
    def has_columns(self) -> bool:
        """Whether a rule is about fields of values."""
        return bool(self.drop or self.mask or self.hash)

    @property
    def any(self) -> bool:
        """Whether there is a rule."""
        return self != NO_RULES

    @property
    def keeps_raw(self) -> bool:
        """Whether the bytes of records that do not decode are stored."""
        return self.raw == KEEP if self.raw else not (self.has_columns or self.key != KEEP)

    def secret_problem(self, secrets: Mapping[str, HashSecret]) -> str | None:
        """The secret that the settings lack; None if they have all."""
        missing = min(self.secrets - secrets.keys(), default=None)
        return f"load: there is no secret {missing!r} in [secrets]" if missing is not None else None

    def rule_of(self, path: str) -> str | None:
        """The name of the rule about a field, or about a field that it is inside of; None if there is none."""
        path = path.casefold()
        for rule in ("drop", "mask", "hash"):
            for other in getattr(self, rule):
                if f"{path}.".startswith(f"{other.casefold()}."):
                    return rule
        return None


def named_rule(rule: str) -> str:
    """A rule, as a sentence about another setting names it."""
    return f"`{rule}` of [topics.NAME.load]"


NO_RULES = LoadRules()
