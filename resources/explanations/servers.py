"""The codes 2xx: brokers, registries, the network and logins."""

from resources.explanations.explanation import ExitCode, Explanation

_NO_ANSWER = "incidents.md#brokers-do-not-answer-or-a-partition-has-no-leader"
_LOGIN = "security.md#how-does-penstock-log-in"
_KERBEROS = "security.md#how-do-i-log-in-with-kerberos"
_PRODUCERS = "library.md#how-do-i-send-messages"
_SCHEMAS = "typed-tables.md#look-at-schemas"
_LATER = "Nothing is lost: the next load continues from the last commit, so a schedule needs no help."

SERVER_ERRORS = (
    Explanation(
        number=201,
        kind="ConnectFailed",
        title="No connection to a server",
        meaning=f"Nothing could be read from it. {_LATER}",
        causes="The server is down, the address or the port in the settings is wrong, the name has no address, or a "
        "firewall is between. Brokers advertise addresses of their own, which this machine must reach too.",
        repairs=(
            "Run `penstock config check`: it names each broker that does not answer.",
            "Start the server, or correct `bootstrap`, `zookeeper` or `url` in the settings.",
            "If only the advertised address cannot be reached, correct `advertised.listeners` of the brokers.",
        ),
        page=_NO_ANSWER,
        exit_code=ExitCode.TRY_AGAIN,
    ),
    Explanation(
        number=202,
        kind="ConnectionLost",
        title="A connection broke",
        meaning=f"The answer was incomplete, and all further attempts failed too. {_LATER}",
        causes="The server restarted, a load balancer closed the connection, or the port expects TLS or a login that "
        "the settings do not have.",
        repairs=(
            "Run the command again later.",
            (
                "If it fails at once each time, compare the port with the listeners of the broker, and set `tls` "
                "and `sasl`."
            ),
        ),
        page=_NO_ANSWER,
        exit_code=ExitCode.TRY_AGAIN,
        also=("NetworkError",),
    ),
    Explanation(
        number=203,
        kind="DeadlineExceeded",
        title="No answer in time",
        meaning=f"A server accepted the connection, but did not answer completely before the time limit. {_LATER}",
        causes="The server is overloaded, the network is slow, or the port speaks TLS and the settings do not.",
        repairs=(
            "Run the command again later.",
            "In a slow network raise `caps.request_timeout_s`, or lower `caps.fetch_bytes`.",
        ),
        page=_NO_ANSWER,
        exit_code=ExitCode.TRY_AGAIN,
    ),
    Explanation(
        number=204,
        kind="LeaderMoved",
        title="A partition has no leader, or another one",
        meaning=f"The partition could not be read during all attempts. Other partitions were loaded. {_LATER}",
        causes="A broker is down and no replica in sync can take over, or the election takes longer than the attempts.",
        repairs=(
            "Start the broker, or let the administrator move the partition.",
            "If elections take long, raise `caps.attempts`: each attempt more waits up to 4 seconds.",
        ),
        page=_NO_ANSWER,
        exit_code=ExitCode.TRY_AGAIN,
    ),
    Explanation(
        number=205,
        kind="CoordinatorMoved",
        title="A group has no coordinator now",
        meaning="Offsets of the consumer group could not be read or committed. Tables do not depend on them.",
        causes="The broker that coordinates the group is down or has just changed.",
        repairs=("Run the command again later.",),
        page=_NO_ANSWER,
        exit_code=ExitCode.TRY_AGAIN,
    ),
    Explanation(
        number=206,
        kind="BrokerBusy",
        title="A broker cannot do it now",
        meaning=f"The broker answered that the request can succeed later, and all attempts had this answer. {_LATER}",
        causes="The broker is starting, replicas are not in sync, or a transaction is ending. The message has "
        "its reason.",
        repairs=("Run the command again later. If it stays so, the log of the broker says why.",),
        page=_NO_ANSWER,
        exit_code=ExitCode.TRY_AGAIN,
    ),
    Explanation(
        number=207,
        kind="BrokerRefused",
        title="Some brokers of the cluster do not answer",
        meaning="Partitions whose leader is one of these brokers cannot be loaded from this machine.",
        causes="A broker is down, or it advertises an address that this machine does not reach.",
        repairs=("Start the broker, or let it advertise an address that this machine reaches.",),
        page=_NO_ANSWER,
    ),
    Explanation(
        number=208,
        kind="Throttled",
        title="The quota of the client is used up",
        meaning=f"A server asks to wait for minutes before it answers again, so the load gave up. {_LATER}",
        causes="The brokers limit how much this client may read, and loads read more.",
        repairs=(
            "Let the administrator raise the quota of the client.",
            "Or read less at once: set `caps.max_bytes_per_s` below the quota.",
        ),
        page="operations.md#how-do-i-limit-how-fast-a-load-reads",
    ),
    Explanation(
        number=209,
        kind="BrokerError",
        title="A broker refused a request",
        meaning="The broker answered with an error of Kafka that another attempt does not change.",
        causes="The message has the number and the name of Kafka's error, and what it means.",
        repairs=("Do what the sentence about Kafka's error suggests. The log of the broker often says more.",),
        page="operations.md#how-do-i-see-whether-all-is-well",
    ),
    Explanation(
        number=210,
        kind="TlsFailed",
        title="TLS failed",
        meaning="No encrypted connection could be made, so nothing was sent.",
        causes="The certificate of the server has expired, belongs to another host name, or was signed by an authority "
        "that this machine does not trust; or the server requires a client certificate.",
        repairs=(
            (
                "Set `ca` to the authority of the servers, and `certificate` and `key` if they require a "
                "client certificate."
            ),
            "Use a host name in the settings that the certificate of the server has.",
        ),
        page="security.md#how-do-i-encrypt-connections",
        exit_code=ExitCode.REFUSED,
    ),
    Explanation(
        number=211,
        kind="AuthenticationFailed",
        title="The login was refused",
        meaning="A server does not accept the user, the password or the token.",
        causes="The secret is wrong or has expired, the user does not exist, or the mechanism is another one.",
        repairs=(
            "Correct `sasl` of the cluster, or `username`, `password` or `token` of the registry.",
            "`penstock config check` tries each login once.",
        ),
        page=_LOGIN,
        exit_code=ExitCode.REFUSED,
    ),
    Explanation(
        number=212,
        kind="AuthorizationFailed",
        title="The client has no right to do this",
        meaning="The login succeeded, but the user may not use the topic, the group or the cluster in this way.",
        causes="An access control list (ACL) of the brokers does not name the user.",
        repairs=("Let the administrator grant the operation that the message names.",),
        page="security.md#which-rights-does-penstock-need",
        exit_code=ExitCode.REFUSED,
    ),
    Explanation(
        number=213,
        kind="RightsMissing",
        title="The client lacks rights for some topics",
        meaning="Topics that the settings select cannot be loaded.",
        causes="Access control lists of the brokers do not cover them.",
        repairs=(
            "Let an administrator run the command in the message.",
            "Or leave the topics out: add them to `deny` in the settings.",
        ),
        page="security.md#which-rights-does-penstock-need",
        exit_code=ExitCode.REFUSED,
    ),
    Explanation(
        number=214,
        kind="TokenServerUnavailable",
        title="The token server does not answer",
        meaning=f"There is no token for the login now. {_LATER}",
        causes="The server that gives tokens is down, overloaded, or cannot be reached.",
        repairs=("Run the command again later, or correct `url` of `client_credentials`.",),
        page="security.md#how-do-i-use-a-token-server-oauth-20-openid-connect",
        exit_code=ExitCode.TRY_AGAIN,
    ),
    Explanation(
        number=215,
        kind="Unsupported",
        title="The server or its data is of a kind that Penstock does not support",
        meaning="The version of an API, the format or the compression of a record, or the generation of Kafka is not "
        "supported.",
        causes="The address belongs to another program, the setting `generation` is wrong, or bytes of the log are "
        "damaged, so that they look like another format.",
        repairs=(
            "Check the address, set `zookeeper` for Kafka 0.7, and remove `generation`.",
            "If the message names an offset, treat the batch as corrupt: `penstock load TOPIC --on-corrupt skip`.",
        ),
        page="kafka-versions.md#how-does-penstock-find-out-the-version",
    ),
    Explanation(
        number=216,
        kind="RegistryUnavailable",
        title="ZooKeeper does not answer",
        meaning=f"The brokers and topics of the cluster are not known now. {_LATER}",
        causes="ZooKeeper is down or has no majority, or its address is wrong.",
        repairs=("Start ZooKeeper, or correct `zookeeper` in the settings, or open the firewall.",),
        page=_NO_ANSWER,
        exit_code=ExitCode.TRY_AGAIN,
    ),
    Explanation(
        number=217,
        kind="RegistryError",
        title="ZooKeeper has other contents than expected",
        meaning="ZooKeeper answers, but not with the entries of a Kafka cluster, or it denies access.",
        causes="The path (chroot) after the last address is missing or wrong, no broker is running, or ZooKeeper has "
        "access control lists.",
        repairs=(
            "Correct the path in `zookeeper`, for example zk1:2181/kafka.",
            "Start the brokers: each of them registers itself.",
        ),
        page="operations.md#how-do-i-see-whether-all-is-well",
    ),
    Explanation(
        number=218,
        kind="NodeMalformed",
        title="An entry of ZooKeeper has the wrong form",
        meaning="One topic, broker or group cannot be read from ZooKeeper. Others are not affected.",
        causes="Another program wrote the entry, or it has a name that Kafka does not allow.",
        repairs=("Look at the entry that the message names, and remove it if nobody needs it.",),
        page="operations.md#how-do-i-see-whether-all-is-well",
    ),
    Explanation(
        number=219,
        kind="NodeVanished",
        title="An entry of ZooKeeper disappeared while it was read",
        meaning="A topic or a broker was removed at this moment. The next command sees the new state.",
        causes="Somebody deleted a topic, or a broker stopped.",
        repairs=("Run the command again.",),
        page="operations.md#how-do-i-see-whether-all-is-well",
    ),
    Explanation(
        number=220,
        kind="SchemaRegistryUnavailable",
        title="The schema registry does not answer",
        meaning=f"Values cannot be decoded without their schemas, so nothing of the step was loaded. {_LATER}",
        causes="The registry is down, overloaded, or cannot be reached.",
        repairs=("Start it, or correct `url` of the registry in the settings.",),
        page=_SCHEMAS,
        exit_code=ExitCode.TRY_AGAIN,
    ),
    Explanation(
        number=221,
        kind="SchemaRegistryError",
        title="The schema registry refuses a request, or no registry is at its address",
        meaning="The answer is not that of a schema registry, or the login may not read the schema.",
        causes="`url` leads to another program or lacks the path of the API, or the user has no right.",
        repairs=(
            "Correct `url`: Apicurio, for example, needs the path /apis/ccompat/v7.",
            "`penstock config check` asks each registry for its subjects.",
        ),
        page=_SCHEMAS,
    ),
    Explanation(
        number=222,
        kind="Truncated",
        title="An answer ends too early",
        meaning="A server sent fewer bytes than its answer needs, so Penstock cannot understand it.",
        causes="The server speaks another protocol or has a fault, or a device between changes the bytes.",
        repairs=(
            "Check that the address belongs to a Kafka broker.",
            "Run the command again with `--debug`: the details show which answer it was.",
        ),
        page=_NO_ANSWER,
    ),
    Explanation(
        number=223,
        kind="QueueFull",
        title="The queue of the producer is full",
        meaning="The message was not sent. This happens only in programs that use the library.",
        causes="Messages are sent faster than the brokers confirm them.",
        repairs=("Send again later, send more slowly, or set a larger queue_size.",),
        page=_PRODUCERS,
        exit_code=ExitCode.TRY_AGAIN,
    ),
    Explanation(
        number=224,
        kind="ProducerClosed",
        title="The producer was closed before the message was confirmed",
        meaning="The message may be stored or not. This happens only in programs that use the library.",
        causes="The producer was closed, or the time for closing was too short.",
        repairs=("Flush the producer before you close it, and allow more time.",),
        page=_PRODUCERS,
    ),
    Explanation(
        number=225,
        kind="Undelivered",
        title="Messages were not confirmed",
        meaning="The error names the first reason. Messages that were refused are not stored; after a failure of the "
        "network they may be stored all the same.",
        causes="A broker refused them, or did not answer during all attempts.",
        repairs=("Repair the first reason, and publish the messages again that are missing.",),
        page=_PRODUCERS,
    ),
    Explanation(
        number=226,
        kind="TransactionError",
        title="The operation does not fit the state of the transaction",
        meaning="The producer refuses it. This happens only in programs that use the library.",
        causes="No transaction was begun, another one is open, it can only be aborted, or a newer producer has the "
        "same transactional id.",
        repairs=("Abort the transaction and begin again; use each transactional id in one producer only.",),
        page=_PRODUCERS,
    ),
    Explanation(
        number=227,
        kind="KdcUnreachable",
        title="No server of Kerberos answers",
        meaning=f"Without a KDC there are no new tickets, so the brokers accept no login. {_LATER}",
        causes="The KDC is down, a firewall is between, or krb5.conf names another address.",
        repairs=(
            "Start the KDC, open the firewall for this machine, or correct `kdc` of the realm in krb5.conf.",
            "Run `penstock config check` on the machine that could not log in.",
        ),
        page=_KERBEROS,
        exit_code=ExitCode.TRY_AGAIN,
    ),
    Explanation(
        number=228,
        kind="KerberosTicketMissing",
        title="There is no ticket of Kerberos",
        meaning="The settings name no keytab, and the cache of this user has no ticket, or one that has expired.",
        causes="`kinit` ran as another user or on another machine, or its ticket was not renewed.",
        repairs=(
            "Run `kinit` as the user who runs Penstock.",
            "For schedules, set `keytab` and `principal` in `sasl`: then no ticket has to be renewed by hand.",
        ),
        page=_KERBEROS,
        exit_code=ExitCode.REFUSED,
    ),
    Explanation(
        number=229,
        kind="KeytabUnusable",
        title="The keytab cannot be used",
        meaning="The file cannot be read, or it has no valid key of the principal.",
        causes="The path is wrong, this user may not read the file, or the key was changed after the keytab was made.",
        repairs=(
            "Correct `keytab` or `principal`, or let this user read the file. `klist -kt FILE` lists its principals.",
            "Get a new keytab from the administrator of the realm.",
        ),
        page=_KERBEROS,
        exit_code=ExitCode.REFUSED,
    ),
    Explanation(
        number=230,
        kind="KerberosClockSkew",
        title="Clocks differ by more than Kerberos accepts",
        meaning="Kerberos refuses tickets if the clocks of this machine, the KDC and the broker differ by more than "
        "five minutes.",
        causes="One of the clocks is not synchronised.",
        repairs=("Synchronise the clocks with NTP, for example with `timedatectl set-ntp true`.",),
        page=_KERBEROS,
        exit_code=ExitCode.REFUSED,
    ),
    Explanation(
        number=231,
        kind="KerberosPrincipalUnknown",
        title="The KDC does not know a principal",
        meaning="It is the principal of the client, or that of the broker: `service_name/HOST` with the host name that "
        "the broker advertises.",
        causes="The principal is misspelled, the brokers have another service name, or they advertise addresses or "
        "names for which there is no principal.",
        repairs=("Correct `principal` or `service_name`, or the host names of the brokers.",),
        page=_KERBEROS,
        exit_code=ExitCode.REFUSED,
    ),
    Explanation(
        number=232,
        kind="KerberosRealmUnknown",
        title="The configuration of Kerberos does not describe the realm",
        meaning="krb5.conf is malformed, or has no KDC for the realm of the principal or of the broker.",
        causes="This process reads another krb5.conf than expected, or a domain is not mapped to its realm.",
        repairs=("Correct krb5.conf, or set KRB5_CONFIG to the path of the right file.",),
        page=_KERBEROS,
        exit_code=ExitCode.REFUSED,
    ),
)
"""The rows, in the order of their numbers."""
