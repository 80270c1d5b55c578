"""Values that have no column of their own, such as a message that contains itself, as JSON text.

The text is that of Protobuf's JSON mapping with the names of the `.proto` file. In it integers of 64 bits are texts.
This way is slow, and only such values take it.
"""

import json
from typing import Any

from google.protobuf import json_format
from google.protobuf.message import DecodeError

from kafka_io.values.protobuf.descriptors import message_class


class NoJson(Exception):
    """A value has no JSON; the message says why."""


def json_text(message: Any, data: bytes) -> bytes:
    """A message of this type as JSON.

    Raises:
        NoJson: the bytes are no such message, or the JSON mapping has nothing for it.
    """
    value = message_class(message)()
    try:
        value.ParseFromString(data)
        mapped = json_format.MessageToDict(value, preserving_proto_field_name=True, descriptor_pool=message.file.pool)
        return json.dumps(mapped, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    except (DecodeError, json_format.Error, UnicodeError, ValueError, TypeError, RecursionError) as error:
        raise NoJson(f"the message has no JSON ({type(error).__name__})") from error
