"""Broker error codes as rows, a table per dialect; `check` turns a row into its exception."""

from collections.abc import Mapping
from dataclasses import dataclass

from kafka_io.errors import (
    AuthorizationFailed,
    BrokerBusy,
    BrokerError,
    CoordinatorMoved,
    LeaderMoved,
    OffsetOutOfRange,
    Where,
)


@dataclass(frozen=True, slots=True)
class ErrorCode:
    """A code with its name on the wire, what it says, and the exception it becomes."""

    code: int
    name: str
    sentence: str
    error: type[BrokerError] = BrokerError


def _by_code(*rows: ErrorCode) -> Mapping[int, ErrorCode]:
    return {row.code: row for row in rows}


# Seed 000, section "Response Header"; codes 2 and 4 are never sent by a genuine 0.7.2 broker (facts, 2).
V07 = _by_code(
    ErrorCode(-1, "Unknown", "the broker refused the request, as it does for a topic name that is not legal"),
    ErrorCode(1, "OffsetOutOfRange", "the broker's log does not hold this offset", OffsetOutOfRange),
    ErrorCode(2, "InvalidMessage", "the broker found a message that fails its checksum"),
    ErrorCode(3, "WrongPartition", "the broker has no such partition"),
    ErrorCode(4, "InvalidFetchSize", "the fetch size is smaller than the message"),
)

# All codes from 0.8 (seed 002, "Error Codes") to 4.1. A number never changed its meaning, some their names: 6 was
# NOT_LEADER_FOR_PARTITION, 14 to 16 were for groups only. Whether another attempt can help is what Kafka's own clients
# think of each.
MODERN = _by_code(
    ErrorCode(-1, "UNKNOWN_SERVER_ERROR", "the broker failed in a way it has no code for; its log tells more"),
    ErrorCode(1, "OFFSET_OUT_OF_RANGE", "the broker's log does not hold this offset", OffsetOutOfRange),
    ErrorCode(2, "CORRUPT_MESSAGE", "the broker found a record that fails its checksum or cannot be right", BrokerBusy),
    ErrorCode(3, "UNKNOWN_TOPIC_OR_PARTITION", "the broker has no such topic or partition", LeaderMoved),
    ErrorCode(4, "INVALID_FETCH_SIZE", "the broker takes no fetch of this size"),
    ErrorCode(5, "LEADER_NOT_AVAILABLE", "the partition has no leader, as while one is elected", LeaderMoved),
    ErrorCode(6, "NOT_LEADER_OR_FOLLOWER", "the broker does not have this partition now", LeaderMoved),
    ErrorCode(7, "REQUEST_TIMED_OUT", "the broker could not finish in the time the request gave", BrokerBusy),
    ErrorCode(8, "BROKER_NOT_AVAILABLE", "a broker that is needed is down"),
    ErrorCode(9, "REPLICA_NOT_AVAILABLE", "a replica that is needed is not there", LeaderMoved),
    ErrorCode(10, "MESSAGE_TOO_LARGE", "the records are larger than the broker takes"),
    ErrorCode(11, "STALE_CONTROLLER_EPOCH", "there is a newer controller"),
    ErrorCode(12, "OFFSET_METADATA_TOO_LARGE", "the text beside the offset is longer than the broker takes"),
    ErrorCode(13, "NETWORK_EXCEPTION", "the broker lost its connection to another", LeaderMoved),
    ErrorCode(14, "COORDINATOR_LOAD_IN_PROGRESS", "the coordinator is still loading", BrokerBusy),
    ErrorCode(15, "COORDINATOR_NOT_AVAILABLE", "there is no coordinator yet", CoordinatorMoved),
    ErrorCode(16, "NOT_COORDINATOR", "another broker is the coordinator", CoordinatorMoved),
    ErrorCode(17, "INVALID_TOPIC_EXCEPTION", "the topic's name is not legal, or the topic is the broker's own"),
    ErrorCode(18, "RECORD_LIST_TOO_LARGE", "the batch is larger than a segment of the broker's log"),
    ErrorCode(19, "NOT_ENOUGH_REPLICAS", "too few replicas are in sync; nothing was written", BrokerBusy),
    ErrorCode(20, "NOT_ENOUGH_REPLICAS_AFTER_APPEND", "written, but to fewer replicas than are asked for", BrokerBusy),
    ErrorCode(21, "INVALID_REQUIRED_ACKS", "acks must be -1, 0 or 1"),
    ErrorCode(22, "ILLEGAL_GENERATION", "the group has gone on to another generation"),
    ErrorCode(23, "INCONSISTENT_GROUP_PROTOCOL", "the group's members speak other protocols"),
    ErrorCode(24, "INVALID_GROUP_ID", "the group's name is not legal"),
    ErrorCode(25, "UNKNOWN_MEMBER_ID", "the group has no such member, or no longer"),
    ErrorCode(26, "INVALID_SESSION_TIMEOUT", "the session timeout is outside what the broker allows"),
    ErrorCode(27, "REBALANCE_IN_PROGRESS", "the group is being rebalanced and must be joined again"),
    ErrorCode(28, "INVALID_COMMIT_OFFSET_SIZE", "the offsets are more than one commit can hold"),
    ErrorCode(29, "TOPIC_AUTHORIZATION_FAILED", "no right to do this to the topic", AuthorizationFailed),
    ErrorCode(30, "GROUP_AUTHORIZATION_FAILED", "no right to do this to the group", AuthorizationFailed),
    ErrorCode(31, "CLUSTER_AUTHORIZATION_FAILED", "no right to do this to the cluster", AuthorizationFailed),
    ErrorCode(32, "INVALID_TIMESTAMP", "a record's timestamp is not one the broker takes"),
    ErrorCode(33, "UNSUPPORTED_SASL_MECHANISM", "the broker has no such SASL mechanism"),
    ErrorCode(34, "ILLEGAL_SASL_STATE", "this request has no place in the login"),
    ErrorCode(35, "UNSUPPORTED_VERSION", "the broker does not speak this version of the API"),
    ErrorCode(36, "TOPIC_ALREADY_EXISTS", "there is a topic of this name"),
    ErrorCode(37, "INVALID_PARTITIONS", "the number of partitions cannot be"),
    ErrorCode(38, "INVALID_REPLICATION_FACTOR", "there cannot be as many replicas, as with fewer brokers than that"),
    ErrorCode(39, "INVALID_REPLICA_ASSIGNMENT", "the replicas cannot be placed like this"),
    ErrorCode(40, "INVALID_CONFIG", "a setting has a value that cannot be"),
    ErrorCode(41, "NOT_CONTROLLER", "another broker is the controller", LeaderMoved),
    ErrorCode(42, "INVALID_REQUEST", "the request contradicts itself, or the broker's state"),
    ErrorCode(43, "UNSUPPORTED_FOR_MESSAGE_FORMAT", "the log's message format is too old for this"),
    ErrorCode(44, "POLICY_VIOLATION", "the broker's policy forbids it"),
    ErrorCode(45, "OUT_OF_ORDER_SEQUENCE_NUMBER", "a batch before this one is missing in the broker's log"),
    ErrorCode(46, "DUPLICATE_SEQUENCE_NUMBER", "the broker has a batch with this sequence number"),
    ErrorCode(47, "INVALID_PRODUCER_EPOCH", "a newer producer has taken over this one's id"),
    ErrorCode(48, "INVALID_TXN_STATE", "the transaction is not in a state for this"),
    ErrorCode(49, "INVALID_PRODUCER_ID_MAPPING", "this producer id is not that of the transactional id"),
    ErrorCode(50, "INVALID_TRANSACTION_TIMEOUT", "the transaction timeout is longer than the broker allows"),
    ErrorCode(51, "CONCURRENT_TRANSACTIONS", "the producer's last transaction is not finished", BrokerBusy),
    ErrorCode(52, "TRANSACTION_COORDINATOR_FENCED", "there is a newer transaction coordinator"),
    ErrorCode(53, "TRANSACTIONAL_ID_AUTHORIZATION_FAILED", "no right to use the transactional id", AuthorizationFailed),
    ErrorCode(54, "SECURITY_DISABLED", "the broker has no security switched on"),
    ErrorCode(55, "OPERATION_NOT_ATTEMPTED", "not tried, because another part of the request failed"),
    ErrorCode(56, "KAFKA_STORAGE_ERROR", "the broker's disk failed", LeaderMoved),
    ErrorCode(57, "LOG_DIR_NOT_FOUND", "the broker has no such log directory"),
    ErrorCode(58, "SASL_AUTHENTICATION_FAILED", "the broker does not accept the login"),
    ErrorCode(59, "UNKNOWN_PRODUCER_ID", "the broker remembers nothing of this producer"),
    ErrorCode(60, "REASSIGNMENT_IN_PROGRESS", "the partition is being moved"),
    ErrorCode(61, "DELEGATION_TOKEN_AUTH_DISABLED", "the broker takes no delegation tokens"),
    ErrorCode(62, "DELEGATION_TOKEN_NOT_FOUND", "there is no such delegation token"),
    ErrorCode(63, "DELEGATION_TOKEN_OWNER_MISMATCH", "the delegation token is another's"),
    ErrorCode(64, "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED", "this connection may not ask for delegation tokens"),
    ErrorCode(65, "DELEGATION_TOKEN_AUTHORIZATION_FAILED", "no right to the delegation token", AuthorizationFailed),
    ErrorCode(66, "DELEGATION_TOKEN_EXPIRED", "the delegation token has expired"),
    ErrorCode(67, "INVALID_PRINCIPAL_TYPE", "the broker knows no principals of this type"),
    ErrorCode(68, "NON_EMPTY_GROUP", "the group has members"),
    ErrorCode(69, "GROUP_ID_NOT_FOUND", "there is no such group"),
    ErrorCode(70, "FETCH_SESSION_ID_NOT_FOUND", "the broker has forgotten the fetch session", BrokerBusy),
    ErrorCode(71, "INVALID_FETCH_SESSION_EPOCH", "the fetch session is at another epoch", BrokerBusy),
    ErrorCode(72, "LISTENER_NOT_FOUND", "the leader has no listener of the kind that was asked on", LeaderMoved),
    ErrorCode(73, "TOPIC_DELETION_DISABLED", "topics cannot be deleted in this cluster"),
    ErrorCode(74, "FENCED_LEADER_EPOCH", "the partition has a newer leader than we know of", LeaderMoved),
    ErrorCode(75, "UNKNOWN_LEADER_EPOCH", "we know of a newer leader than the broker does", LeaderMoved),
    ErrorCode(76, "UNSUPPORTED_COMPRESSION_TYPE", "the broker or this version of the API has not this codec"),
    ErrorCode(77, "STALE_BROKER_EPOCH", "the broker has registered anew"),
    ErrorCode(78, "OFFSET_NOT_AVAILABLE", "the new leader does not know the log's end yet", BrokerBusy),
    ErrorCode(79, "MEMBER_ID_REQUIRED", "the group must be joined with the member id given here"),
    ErrorCode(80, "PREFERRED_LEADER_NOT_AVAILABLE", "the preferred leader is not there", LeaderMoved),
    ErrorCode(81, "GROUP_MAX_SIZE_REACHED", "the group has as many members as it may"),
    ErrorCode(82, "FENCED_INSTANCE_ID", "another member has this one's static name"),
    ErrorCode(83, "ELIGIBLE_LEADERS_NOT_AVAILABLE", "no replica that may lead is there", LeaderMoved),
    ErrorCode(84, "ELECTION_NOT_NEEDED", "the partition has the leader that was asked for", LeaderMoved),
    ErrorCode(85, "NO_REASSIGNMENT_IN_PROGRESS", "the partition is not being moved"),
    ErrorCode(86, "GROUP_SUBSCRIBED_TO_TOPIC", "the group still reads the topic"),
    ErrorCode(87, "INVALID_RECORD", "the broker's checks refused a record"),
    ErrorCode(88, "UNSTABLE_OFFSET_COMMIT", "a transaction is about to change these offsets", BrokerBusy),
    ErrorCode(89, "THROTTLING_QUOTA_EXCEEDED", "more was asked for than the quota allows", BrokerBusy),
    ErrorCode(90, "PRODUCER_FENCED", "a newer producer has this transactional id"),
    ErrorCode(91, "RESOURCE_NOT_FOUND", "there is no such resource"),
    ErrorCode(92, "DUPLICATE_RESOURCE", "the resource is named twice, or there already"),
    ErrorCode(93, "UNACCEPTABLE_CREDENTIAL", "the credential does not meet the rules"),
    ErrorCode(94, "INCONSISTENT_VOTER_SET", "the two sides know other voters"),
    ErrorCode(95, "INVALID_UPDATE_VERSION", "the update carries a wrong version"),
    ErrorCode(96, "FEATURE_UPDATE_FAILED", "the features could not be changed"),
    ErrorCode(97, "PRINCIPAL_DESERIALIZATION_FAILURE", "the controller could not read who asked"),
    ErrorCode(98, "SNAPSHOT_NOT_FOUND", "there is no such snapshot"),
    ErrorCode(99, "POSITION_OUT_OF_RANGE", "the snapshot does not have this position"),
    ErrorCode(100, "UNKNOWN_TOPIC_ID", "the broker has no topic of this id", LeaderMoved),
    ErrorCode(101, "DUPLICATE_BROKER_REGISTRATION", "another broker has this id"),
    ErrorCode(102, "BROKER_ID_NOT_REGISTERED", "no broker has this id"),
    ErrorCode(103, "INCONSISTENT_TOPIC_ID", "the log's topic has another id", LeaderMoved),
    ErrorCode(104, "INCONSISTENT_CLUSTER_ID", "this is another cluster"),
    ErrorCode(105, "TRANSACTIONAL_ID_NOT_FOUND", "there is no such transactional id"),
    ErrorCode(106, "FETCH_SESSION_TOPIC_ID_ERROR", "the fetch session mixes names and ids of topics", BrokerBusy),
    ErrorCode(107, "INELIGIBLE_REPLICA", "this replica may not be in sync"),
    ErrorCode(108, "NEW_LEADER_ELECTED", "the change has made another replica the leader"),
    ErrorCode(109, "OFFSET_MOVED_TO_TIERED_STORAGE", "the offset has left the broker's own disk"),
    ErrorCode(110, "FENCED_MEMBER_EPOCH", "the group has moved the member to another epoch"),
    ErrorCode(111, "UNRELEASED_INSTANCE_ID", "a member that has not left has this static name"),
    ErrorCode(112, "UNSUPPORTED_ASSIGNOR", "the group's coordinator has no such assignor"),
    ErrorCode(113, "STALE_MEMBER_EPOCH", "the member is at an older epoch than the group"),
    ErrorCode(114, "MISMATCHED_ENDPOINT_TYPE", "a broker was asked for what controllers do, or the reverse"),
    ErrorCode(115, "UNSUPPORTED_ENDPOINT_TYPE", "the broker cannot describe endpoints of this type"),
    ErrorCode(116, "UNKNOWN_CONTROLLER_ID", "no controller has this id"),
    ErrorCode(117, "UNKNOWN_SUBSCRIPTION_ID", "the telemetry subscription is out of date"),
    ErrorCode(118, "TELEMETRY_TOO_LARGE", "the telemetry is more than the broker takes"),
    ErrorCode(119, "INVALID_REGISTRATION", "the controller does not accept the broker's registration"),
    ErrorCode(120, "TRANSACTION_ABORTABLE", "the transaction failed and must be aborted"),
    ErrorCode(121, "INVALID_RECORD_STATE", "a record of a share group is not in a state for this"),
    ErrorCode(122, "SHARE_SESSION_NOT_FOUND", "the broker has forgotten the share session", BrokerBusy),
    ErrorCode(123, "INVALID_SHARE_SESSION_EPOCH", "the share session is at another epoch", BrokerBusy),
    ErrorCode(124, "FENCED_STATE_EPOCH", "the share group's state has a newer epoch"),
    ErrorCode(125, "INVALID_VOTER_KEY", "the voter key is not the receiver's"),
    ErrorCode(126, "DUPLICATE_VOTER", "the voter is one already"),
    ErrorCode(127, "VOTER_NOT_FOUND", "there is no such voter"),
    ErrorCode(128, "INVALID_REGULAR_EXPRESSION", "the regular expression is none"),
    ErrorCode(129, "REBOOTSTRAP_REQUIRED", "the client must begin again from the addresses it was given"),
    ErrorCode(130, "STREAMS_INVALID_TOPOLOGY", "the streams topology cannot be"),
    ErrorCode(131, "STREAMS_INVALID_TOPOLOGY_EPOCH", "the streams topology has a wrong epoch"),
    ErrorCode(132, "STREAMS_TOPOLOGY_FENCED", "the streams topology is out of date"),
    ErrorCode(133, "SHARE_SESSION_LIMIT_REACHED", "the broker holds as many share sessions as it may", BrokerBusy),
)


def error_of(code: int, where: Where, table: Mapping[int, ErrorCode] = V07) -> BrokerError | None:
    """What `code` stands for: None for 0, which is success; a number not in the table keeps its number."""
    if code == 0:
        return None
    row = table.get(code) or ErrorCode(code, "?", "the broker answered with an error code nobody knows")
    return row.error(f"{row.sentence} (error {code} {row.name})", where, code)


def check(code: int, where: Where, table: Mapping[int, ErrorCode] = V07) -> None:
    """Raise what `code` stands for.

    Raises:
        BrokerError: for every code but 0.
    """
    error = error_of(code, where, table)
    if error is not None:
        raise error
