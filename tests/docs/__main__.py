"""`make docs`."""

from tests.docs.generated import write
from tests.docs.pages import name_of
from tests.docs.website import SITE, build

write()
build()
print(f"The site is in {name_of(SITE)}: open {name_of(SITE / 'index.html')}, or serve the folder.")  # noqa: T201
