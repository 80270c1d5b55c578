"""`make docs`."""

from tests.docs.generated import write

write()
