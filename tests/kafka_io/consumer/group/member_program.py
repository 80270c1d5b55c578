"""A member in a process of its own, which a test may kill. It prints each value that it reads, and then commits.

Arguments: the broker's address, the group, the topic, an assignor's name, the session timeout in seconds.
"""

import sys

from kafka_io.cluster.opening import open_cluster
from kafka_io.consumer.group.assignors import ASSIGNORS
from kafka_io.consumer.group.consumer import GroupConsumer
from kafka_io.consumer.group.settings import GroupSettings
from kafka_io.errors import BrokerError


def main() -> None:
    """Read until the process is ended."""
    address, group, topic, assignor, session_s = sys.argv[1:]
    settings = GroupSettings(
        group=group, heartbeat_s=0.2, session_timeout_s=float(session_s), assignors=(ASSIGNORS[assignor],)
    )
    with (
        open_cluster("main", bootstrap=address) as cluster,
        GroupConsumer(cluster, settings, topics=[topic], auto_commit_s=None) as consumer,
    ):
        while True:
            for batch in consumer.poll(0.2):
                for value in batch.records.column("value").to_pylist():
                    sys.stdout.write(f"{value.decode()}\n")
            sys.stdout.flush()
            try:
                consumer.commit()
            except BrokerError as error:  # another member reads these records again
                sys.stderr.write(f"{error}\n")


if __name__ == "__main__":
    main()
