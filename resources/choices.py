"""What a load does where a log is no longer what the table goes on from. Without a choice it stops, and says so."""

from collections.abc import Mapping
from typing import Literal, Self

from pydantic import ValidationError

from resources.section import Section


class Choices(Section):
    """A choice for each way in which logs and tables part. The commit that follows one records it."""

    on_expired: Literal["fail", "skip"] = "fail"
    """Retention removed offsets that were not loaded. "skip" counts them as a gap and goes on where the log begins."""

    on_truncated: Literal["fail", "rewind"] = "fail"
    """The log was cut below the cursor. "rewind" takes back the rows that it lost, and loads what it has."""

    on_recreated: Literal["fail", "restart"] = "fail"
    """The topic was deleted and made anew. "restart" keeps the rows of its former life and loads the new one beside."""

    on_vanished: Literal["fail", "wait"] = "fail"
    """From 0.8 on: the topic has fewer partitions than its table. "wait" loads the others. (In 0.7 a broker that is
    away takes its partitions with it, and every load waits for them.)"""

    def but(self, chosen: Mapping[str, str | None]) -> Self:
        """These choices, with those of `chosen` in place of the file's; None leaves one as it is.

        Raises:
            ValueError: there is no such choice.
        """
        made = {name: value for name, value in chosen.items() if value is not None}
        try:
            return type(self).model_validate(self.model_dump() | made)
        except ValidationError as error:
            problem = error.errors(include_url=False, include_input=False)[0]
            raise ValueError(f"{problem['loc'][0]}: {problem['msg']}") from error
