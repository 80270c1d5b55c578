"""Routes of a table are continued by others if no record that is stored would have gone to another table."""

from pipelines.ledger.table_routes import TableRoutes
from resources.settings.rules.topic_tables import TopicTables


def test_ids_can_be_added_to_routes_by_schema_only() -> None:
    def of(by: str, **names: str) -> TableRoutes:
        return TableRoutes.of(TopicTables.model_validate({"by": by, "names": {"a": "x", **names}}))

    assert of("schema").continued_by(of("schema", **{"id:7": "x"}))
    assert not of("header:t").continued_by(of("header:t", **{"id:7": "x"}))
    assert not of("schema", **{"id:7": "x"}).continued_by(of("schema", **{"id:7": "y"}))
    assert not of("schema", **{"id:7": "x"}).continued_by(of("schema"))
    assert not of("schema").continued_by(of("schema", b="x"))
    assert not of("schema").continued_by(of("header:t"))


def test_only_further_types_continue_routes_and_only_without_a_table_for_others() -> None:
    def of(others: str, **names: str) -> TableRoutes:
        return TableRoutes.of(TopicTables.model_validate({"by": "header:t", "names": names, "others": others}))

    former = of("fail", a="x", b="y")
    assert former.continued_by(of("fail", a="x", b="y", c="z"))
    assert former.continued_by(of("rest", a="x", b="y", c="z"))
    for other in (
        of("fail", a="x"),
        of("fail", b="y", a="x"),
        of("fail", c="z", a="x", b="y"),
        of("fail", a="y", b="y"),
    ):
        assert not former.continued_by(other)
    assert of("main", a="x").continued_by(of("main", a="x"))
    assert not of("main", a="x").continued_by(of("main", a="x", b="y"))
    assert not TableRoutes().continued_by(former)
    assert not former.continued_by(TableRoutes())
    assert former.table_names("t") == ["t", "t/x", "t/y"]
