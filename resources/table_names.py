"""The names of tables: that of the topic, and behind it a slash and a route if the topic has several tables.

No topic has a slash in its name, so `events/orders` is a table of the topic `events` and of no other one.
"""

_SEPARATOR = "/"


def topic_of(name: str) -> str:
    """The topic of a table with this name.

    >>> topic_of("events/orders"), topic_of("events")
    ('events', 'events')
    """
    return name.partition(_SEPARATOR)[0]


def route_of(name: str) -> str:
    """The route of a table with this name; empty for the topic's own table.

    >>> route_of("events/orders"), route_of("events")
    ('orders', '')
    """
    return name.partition(_SEPARATOR)[2]


def table_name(topic: str, route: str) -> str:
    """The name of the table for the records of a route; without a route it is the topic's own table.

    >>> table_name("events", "orders"), table_name("events", "")
    ('events/orders', 'events')
    """
    return f"{topic}{_SEPARATOR}{route}" if route else topic
