"""The format of each table, from the settings of the lake, the cluster and the topic."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from resources.table_names import SEPARATOR, names_topic, topic_of

TableFormat = Literal["delta", "iceberg"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFormats:
    """The formats of the tables of a lake. What is said of a topic precedes what is said of its cluster.

    Args:
        of_lake: the format of all other tables.
        of_clusters: the formats of the tables of clusters, by their names.
        of_topics: the formats of topics, by the names of their sections, in the order of the settings file; None for a
            section without a format.
    """

    of_lake: TableFormat = "delta"
    of_clusters: Mapping[str, TableFormat] = field(default_factory=dict)
    of_topics: Mapping[str, TableFormat | None] = field(default_factory=dict)

    def of(self, cluster: str, topic: str) -> TableFormat:
        """The format of a table.

        >>> formats = TableFormats(of_clusters={"web": "iceberg"}, of_topics={"clicks": "delta", "c.*": None})
        >>> formats.of("web", "clicks"), formats.of("web", "carts"), formats.of("main", "carts")
        ('delta', 'iceberg', 'delta')
        """
        return self._of_topic(topic) or self.of_clusters.get(cluster, self.of_lake)

    def _of_topic(self, name: str) -> TableFormat | None:
        """The format in the first section that names the table, or otherwise its topic; None if there is none."""
        for of_table, searched in ((SEPARATOR in name, name), (False, topic_of(name))):
            for section, format_ in self.of_topics.items():
                if (SEPARATOR in section) == of_table and names_topic(section, searched):
                    return format_
        return None

    @property
    def has_iceberg(self) -> bool:
        """Whether any table can be an Iceberg table."""
        return "iceberg" in {self.of_lake, *self.of_clusters.values(), *self.of_topics.values()}


ALL_DELTA = TableFormats()
