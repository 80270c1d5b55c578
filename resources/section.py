"""What the sections of the settings file have in common."""

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """A table of the file. It takes known keys only, and its errors do not repeat values: one may be a secret (X01).

    The docstring below a field is its line in the settings reference.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True, use_attribute_docstrings=True)
