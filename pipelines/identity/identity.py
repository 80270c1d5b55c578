"""Recognises the topic of a table, although ids appear, disappear and change in upgrades and with other addresses.

A table keeps all ids of its topic that its loads have seen. Only a contradiction between two ids of the same kind, or a
leader epoch below the stored one, means that the cluster's topic is another one. Ids that only one side knows are
learned with the next commit. The last message before each cursor is read again and compared: a log that was created
again, or that was put back to an older copy, has another message there. A topic id is learned when the logs of all
partitions were compared.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace

from kafka_io.model import Bounds, BrokerPartition, TopicIds
from pipelines.identity.divergence import Divergence
from pipelines.ledger.ledger import TableState, TopicFindings, TopicIdentity
from pipelines.table.table_store import TableSnapshot
from resources.errors import ClusterChanged, LoadError, RoutesChanged, TopicRecreated
from resources.settings.choices import Choices
from resources.table_names import route_of

_DEFAULT = Choices()


def table_state(
    snapshot: TableSnapshot, topic: TopicIdentity, aliases: Collection[str] = (), choices: Choices = _DEFAULT
) -> TableState:
    """The table's state at this snapshot, for a load of `topic`.

    `aliases` are other names of the topic's incarnation (see `TopicEntry.also`).

    Raises:
        ClusterChanged: the table's topic belongs to another cluster.
        TopicRecreated: the table holds another incarnation of the topic (faults B05, B06).
        RoutesChanged: it is another table of the topic.
    """
    new = TableState.new(topic, aliases)
    if snapshot.entry is None:
        return new
    stored = snapshot.entry.state
    if route_of(stored.topic.name) != route_of(topic.name):
        raise RoutesChanged(f"this is the table {stored.topic.name}: put it back to where it was", topic.where)
    followed = _check_cluster(snapshot, topic, stored.ids, choices)
    # Upgrades add ids, and another address hides some (fault N05). So only two ids of the same kind contradict each
    # other, and the strongest of them decides: a topic id, then the zxid of the node.
    difference = stored.ids.difference(new.ids)
    if difference:
        return other_incarnation(snapshot, new, difference, choices, followed, same_ids=False)
    # Two empty ids are equal and prove nothing. Then the last messages of the logs are compared (fault P11).
    same_topic_id = bool(new.ids.topic_id) and stored.ids.topic_id == new.ids.topic_id
    # Until this run commits, another run may still commit with the former ids. `state_after` recognises its commit by
    # them, and does not take it for one of a third topic.
    adopted = stored.ids if followed else None
    ids = stored.ids.learned_except_topic_id(new.ids)  # see with_topic_id
    findings = TopicFindings(same_topic_id=same_topic_id, adopted=adopted, shown=new, followed=followed)
    return replace(stored, ids=ids, findings=findings)


def _check_cluster(snapshot: TableSnapshot, topic: TopicIdentity, stored: TopicIds, choices: Choices) -> dict[str, str]:
    """The choice that the user made about another cluster; empty if the cluster is the same.

    Raises:
        ClusterChanged: it is another cluster, and the user made no choice.
    """
    # Brokers before 0.10.1 have no cluster id, and what one side does not know contradicts nothing (faults N05, N17).
    if not stored.cluster_id or not topic.cluster_id or stored.cluster_id == topic.cluster_id:
        return {}
    if choices.on_cluster_changed == "adopt":
        return {"on_cluster_changed": "adopt"}
    raise ClusterChanged(
        f"the table holds a topic of the cluster {stored.cluster_id}, but the settings lead to {topic.cluster_id}; if "
        'this cluster took the place of the former one, on_cluster_changed = "adopt" keeps the '
        f"table's {snapshot.rows} rows and continues at its cursors",
        topic.where,
    )


def other_incarnation(
    snapshot: TableSnapshot,
    new: TableState,
    difference: str,
    choices: Choices,
    followed: Mapping[str, str],
    *,
    same_ids: bool,
) -> TableState:
    """The state from which the user chose to load a topic that is not the one of the table.

    Args:
        snapshot: the table.
        new: the state of a new table of the topic.
        difference: how the cluster's topic differs from the table's.
        choices: the user's choices.
        followed: the choices that the load follows already.
        same_ids: whether the ids do not differ, so that the topic needs a name that no incarnation had before.

    Raises:
        TopicRecreated: the user made no choice.
    """
    assert snapshot.entry is not None
    stored = snapshot.entry.state
    followed = {**followed, "on_recreated": choices.on_recreated}
    match choices.on_recreated:
        case "restart":
            topic = new.topic
            # The ledger keeps incarnations apart by their names. If only epochs or messages show another topic
            # (faults P08, P11), its name is still that of the former one. The sequence number makes one that no commit
            # can have had.
            if same_ids:
                topic = replace(topic, incarnation=f"{topic.incarnation}+{snapshot.entry.sequence}")
            findings = TopicFindings(replaced=stored.topic.incarnation, followed=followed)
            return replace(new, topic=topic, findings=findings)
        case "adopt":
            # Epochs and last messages are those of the former log. Each later load would compare the new log with them
            # and stop.
            findings = TopicFindings(adopted=stored.ids, followed=followed)
            return replace(stored, ids=new.ids, epochs={}, last_messages={}, findings=findings)
    raise _recreated(snapshot, stored, difference)


def _recreated(snapshot: TableSnapshot, stored: TableState, difference: str) -> LoadError:
    return TopicRecreated(
        f"the topic is not the one that the table holds ({difference}): it was deleted and created again; "
        f'on_recreated = "restart" keeps the table\'s {snapshot.rows} rows and loads all records of the new topic '
        'beside them; on_recreated = "adopt" keeps the rows and continues at the cursors, so that records of the new '
        "topic before them are not loaded",
        stored.topic.where,
    )


def check_epochs(
    snapshot: TableSnapshot, state: TableState, bounds: Mapping[BrokerPartition, Bounds], choices: Choices
) -> TableState:
    """The state of the table, if no leader epoch is below the one that the table stores.

    Leader epochs only grow, so a lower one belongs to a topic that was created later. With the same topic id, it comes
    from a leader that was deposed, or from brokers that were put back to an older copy: see `compare_logs`.

    Raises:
        TopicRecreated: an epoch is lower, and the user made no choice.
    """
    for partition in state.with_older_leader(bounds) if not state.findings.same_topic_id else ():
        epochs = f"leader epoch {bounds[partition].epoch} instead of {state.epochs[partition]}"
        return other_log(snapshot, state, f"{epochs} in partition {partition}", choices)
    return state


def check_divergence(
    snapshot: TableSnapshot,
    state: TableState,
    divergences: Mapping[BrokerPartition, Divergence],
    choices: Choices,
) -> TableState:
    """The state of the table, if each log has some of the messages that the table has.

    Raises:
        TopicRecreated: a log has none of them, and the user made no choice (fault P11).
    """
    for partition, divergence in sorted(divergences.items()):
        if not divergence.common:
            difference = f"the log of partition {partition} has none of the messages that were loaded from it"
            return other_log(snapshot, state, difference, choices)
    return state


def with_topic_id(state: TableState, bounds: Mapping[BrokerPartition, Bounds]) -> TableState:
    """The state with the topic id that the cluster shows. The logs of all partitions must be those of the table.

    With the same id, a log with other messages counts as one that has lost records, and not as one that was created
    again. So while one partition has no leader, or waits for the user's choice, the id is learned by a later load.
    Partitions that were loaded before brokers had epochs get those of now.
    """
    if state.findings.shown is None or not state.findings.shown.ids.topic_id:
        return state
    epochs = {
        partition: bound.epoch for partition, bound in bounds.items() if partition in state.covered and bound.epoch >= 0
    }
    # An epoch that the table has stays: it belongs to the rows before the cursor. The epoch of now would hide a
    # truncation since then (fault B04).
    return replace(state, ids=state.ids.learned(state.findings.shown.ids), epochs={**epochs, **state.epochs})


def other_log(snapshot: TableSnapshot, state: TableState, difference: str, choices: Choices) -> TableState:
    """The same as `other_incarnation` for a topic whose ids do not show that it is another one.

    Raises:
        TopicRecreated: the user made no choice.
    """
    findings = state.findings
    return other_incarnation(snapshot, findings.shown or state, difference, choices, findings.followed, same_ids=True)
