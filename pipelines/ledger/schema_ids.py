"""The schemas that decoded the rows of a table, as its ledger keeps them: their ids, and digests of their texts."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaText:
    """The text that an id of a registry had when rows were decoded with it.

    Args:
        id: the id.
        digest: the digest of the text and of all that it refers to.
        registry: the name of the registry in the settings.
        met_ms: the time of the first commit after which the ledger has the digest, in ms since 1970; 0 before it.
    """

    id: int
    digest: str
    registry: str
    met_ms: int = 0


SchemaTexts = tuple[SchemaText, ...]
"""The texts of ids, in the order in which the table has met them. The newest of an id is the one that counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaIds:
    """Ids of schemas in registries: those of values, and those of keys.

    An id that only earlier versions of Penstock have met has no text. `messages` are the message types that values of
    Protobuf have, if the table has those of several types; see `message_of`.
    """

    values: tuple[int, ...] = ()
    keys: tuple[int, ...] = ()
    messages: tuple[str, ...] = ()
    value_texts: SchemaTexts = ()
    key_texts: SchemaTexts = ()

    @property
    def of_values(self) -> tuple[int | str, ...]:
        """All that a plan must have for the values: the ids, and the message types."""
        return (*self.values, *self.messages)

    def with_ids(self, others: "SchemaIds", now_ms: int = 0) -> "SchemaIds":
        """These ids and the others, in order. New texts are met at `now_ms`."""
        return SchemaIds(
            values=tuple(sorted({*self.values, *others.values})),
            keys=tuple(sorted({*self.keys, *others.keys})),
            messages=tuple(sorted({*self.messages, *others.messages})),
            value_texts=_with_texts(self.value_texts, others.value_texts, now_ms),
            key_texts=_with_texts(self.key_texts, others.key_texts, now_ms),
        )

    def conflict(self, planned: "SchemaIds") -> int | None:
        """An id that has another text here than in the plan; None if all texts agree.

        What was planned has all texts of its ids that the table had by then, and perhaps newer ones.
        """
        pairs = (self.value_texts, planned.value_texts), (self.key_texts, planned.key_texts)
        for here, there in pairs:
            for id_ in {text.id for text in there}:
                digests = digests_of(here, id_)
                if digests_of(there, id_)[: len(digests)] != digests:
                    return id_
        return None


NO_SCHEMAS = SchemaIds()


def message_of(id_: int, name: str) -> str:
    """A message type of a Protobuf schema, as ledgers keep it.

    >>> message_of(17, "shop.Order")
    '17 shop.Order'
    """
    return f"{id_} {name}"


def messages_by_id(texts: Iterable[int | str]) -> Mapping[int, tuple[str, ...]]:
    """The names of message types by the id of their schema. Ids and GUIDs of schemas are no message types.

    >>> messages_by_id(["17 shop.Order", 18])
    {17: ('shop.Order',)}
    """
    messages: dict[int, tuple[str, ...]] = {}
    for text in texts:
        id_, _, name = str(text).partition(" ")
        if name:
            messages[int(id_)] = (*messages.get(int(id_), ()), name)
    return messages


def digests_of(texts: Iterable[SchemaText], id_: int) -> list[str]:
    """The digests of the texts of an id, the newest last."""
    return [text.digest for text in texts if text.id == id_]


def _with_texts(texts: SchemaTexts, others: SchemaTexts, now_ms: int) -> SchemaTexts:
    """The texts, and after them those of the others that are new."""
    new = [text for id_ in dict.fromkeys(text.id for text in others) for text in _new(texts, others, id_)]
    return (*texts, *(replace(text, met_ms=text.met_ms or now_ms) for text in new))


def _new(texts: SchemaTexts, others: SchemaTexts, id_: int) -> list[SchemaText]:
    return [text for text in others if text.id == id_][len(digests_of(texts, id_)) :]
