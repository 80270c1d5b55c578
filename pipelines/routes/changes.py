"""Routes that differ from those by which the rows of a table were stored."""

from dataclasses import replace

from pipelines.ledger.ledger import TableState
from pipelines.ledger.table_routes import TableRoutes
from resources.errors import RoutesChanged


def with_routes(state: TableState, planned: TableRoutes) -> TableState:
    """The state of a table whose next records are routed as planned.

    Raises:
        RoutesChanged: records of the table would be in another one by the planned routes, or the reverse.
    """
    has_offsets = any(start < cursor for start, cursor in state.covered.values())
    if has_offsets and not state.routes.continued_by(planned):
        raise RoutesChanged(
            "the table was loaded with other values of [topics.NAME.tables] than the settings have now, so records of "
            "one type would be in two tables: restore the former values, or move all tables of the topic away and load "
            'it into new ones. Types can be added later if others = "fail"',
            state.topic.where,
        )
    return replace(state, routes=planned)
