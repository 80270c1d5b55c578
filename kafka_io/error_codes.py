"""Kafka's error codes: name, number, meaning, and the exception that each becomes; one enum per protocol."""

from enum import IntEnum
from typing import Self

from kafka_io.errors import (
    AuthorizationFailed,
    BrokerBusy,
    BrokerError,
    CoordinatorMoved,
    LeaderMoved,
    OffsetOutOfRange,
    Where,
)


class KafkaErrorCode(IntEnum):
    """The base of both enums: a number that knows its meaning and its exception.

    Attributes:
        sentence: what went wrong, as error messages say it.
        exception: the class of error to raise; its `retriable` says whether another attempt can help.
    """

    sentence: str
    exception: type[BrokerError]

    def __new__(cls, number: int, sentence: str, exception: type[BrokerError] = BrokerError) -> Self:
        """A member from its number, sentence and exception."""
        code = int.__new__(cls, number)
        code._value_ = number
        code.sentence = sentence
        code.exception = exception
        return code

    @classmethod
    def error_of(cls, number: int, where: Where, *, right: str = "") -> BrokerError | None:
        """The error for a number in an answer; None for 0, which is success.

        `right` is the operation that the request needs in Kafka's access control, such as READ.
        """
        if number == 0:
            return None
        code = cls._value2member_map_.get(number)
        if not isinstance(code, cls):
            return BrokerError(f"the broker answered with an unknown error code (error {number} ?)", where, number)
        advice = f"; grant it {right}" if right and code.exception is AuthorizationFailed else ""
        return code.exception(f"{code.sentence}{advice} (error {number} {code.name})", where, number)

    @classmethod
    def check(cls, number: int, where: Where, *, right: str = "") -> None:
        """Raise the error for a number in an answer. See `error_of` for `right`.

        Raises:
            BrokerError: for every number except 0.
        """
        error = cls.error_of(number, where, right=right)
        if error is not None:
            raise error


class ErrorCode07(KafkaErrorCode):
    """The codes of 0.7. A genuine 0.7.2 broker never sends 2 or 4 [kafka-0.7: Errors]."""

    Unknown = -1, "the broker refused the request, for example because the topic's name is not valid"
    OffsetOutOfRange = 1, "the broker's log does not hold this offset", OffsetOutOfRange
    InvalidMessage = 2, "the broker found a message that fails its checksum"
    WrongPartition = 3, "the broker has no such partition"
    InvalidFetchSize = 4, "the fetch size is smaller than the message"


class ErrorCode(KafkaErrorCode):
    """The codes from 0.8 [kafka-0.8: Error codes] to 4.1.

    A number never changed its meaning, but some changed their names: 6 was NOT_LEADER_FOR_PARTITION, and 14 to 16 were
    for groups only. The exceptions follow Kafka's own clients in what is worth another attempt.
    """

    NONE = 0, "no error"
    UNKNOWN_SERVER_ERROR = -1, "the broker failed in a way that has no error code; its log says why"
    OFFSET_OUT_OF_RANGE = 1, "the broker's log does not hold this offset", OffsetOutOfRange
    CORRUPT_MESSAGE = 2, "the broker found a record that fails its checksum or is not valid", BrokerBusy
    UNKNOWN_TOPIC_OR_PARTITION = 3, "the broker has no such topic or partition", LeaderMoved
    INVALID_FETCH_SIZE = 4, "the broker does not accept a fetch of this size"
    LEADER_NOT_AVAILABLE = 5, "the partition has no leader, for example during an election", LeaderMoved
    NOT_LEADER_OR_FOLLOWER = 6, "the broker does not have this partition now", LeaderMoved
    REQUEST_TIMED_OUT = 7, "the broker could not finish within the time that the request allows", BrokerBusy
    BROKER_NOT_AVAILABLE = 8, "a broker that is needed is down"
    REPLICA_NOT_AVAILABLE = 9, "a replica that is needed is not available", LeaderMoved
    MESSAGE_TOO_LARGE = 10, "the records are larger than the broker accepts"
    STALE_CONTROLLER_EPOCH = 11, "there is a newer controller"
    OFFSET_METADATA_TOO_LARGE = 12, "the metadata text of the offset is longer than the broker accepts"
    NETWORK_EXCEPTION = 13, "the broker lost its connection to another broker", LeaderMoved
    COORDINATOR_LOAD_IN_PROGRESS = 14, "the coordinator is still loading", BrokerBusy
    COORDINATOR_NOT_AVAILABLE = 15, "there is no coordinator yet", CoordinatorMoved
    NOT_COORDINATOR = 16, "another broker is the coordinator", CoordinatorMoved
    INVALID_TOPIC_EXCEPTION = 17, "the topic's name is not valid, or the topic is internal to the broker"
    RECORD_LIST_TOO_LARGE = 18, "the batch is larger than a segment of the broker's log"
    NOT_ENOUGH_REPLICAS = 19, "too few replicas are in sync; nothing was written", BrokerBusy
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = 20, "the records were written, but to fewer replicas than required", BrokerBusy
    INVALID_REQUIRED_ACKS = 21, "acks must be -1, 0 or 1"
    ILLEGAL_GENERATION = 22, "the group is in a newer generation than the request"
    INCONSISTENT_GROUP_PROTOCOL = 23, "the member has no assignor or protocol in common with the group"
    INVALID_GROUP_ID = 24, "the group's name is not valid"
    UNKNOWN_MEMBER_ID = 25, "the group does not have this member, or no longer"
    INVALID_SESSION_TIMEOUT = 26, "the session timeout is outside the range that the broker allows"
    REBALANCE_IN_PROGRESS = 27, "the group is rebalancing and must be joined again"
    INVALID_COMMIT_OFFSET_SIZE = 28, "one commit cannot hold so many offsets"
    TOPIC_AUTHORIZATION_FAILED = 29, "the client is not authorized to do this with the topic", AuthorizationFailed
    GROUP_AUTHORIZATION_FAILED = 30, "the client is not authorized to do this with the group", AuthorizationFailed
    CLUSTER_AUTHORIZATION_FAILED = 31, "the client is not authorized to do this with the cluster", AuthorizationFailed
    INVALID_TIMESTAMP = 32, "the broker does not accept a record's timestamp"
    UNSUPPORTED_SASL_MECHANISM = 33, "the broker does not support the SASL mechanism"
    ILLEGAL_SASL_STATE = 34, "the request is not allowed at this point of the login"
    UNSUPPORTED_VERSION = 35, "the broker does not support this version of the API"
    TOPIC_ALREADY_EXISTS = 36, "a topic with this name exists"
    INVALID_PARTITIONS = 37, "the number of partitions is not valid"
    INVALID_REPLICATION_FACTOR = 38, "the replication factor is not valid, for example above the number of brokers"
    INVALID_REPLICA_ASSIGNMENT = 39, "the replica assignment is not valid"
    INVALID_CONFIG = 40, "a setting has a value that is not valid"
    NOT_CONTROLLER = 41, "another broker is the controller", LeaderMoved
    INVALID_REQUEST = 42, "the request contradicts itself, or the broker's state"
    UNSUPPORTED_FOR_MESSAGE_FORMAT = 43, "the log's message format is too old for this"
    POLICY_VIOLATION = 44, "the broker's policy forbids it"
    OUT_OF_ORDER_SEQUENCE_NUMBER = 45, "a batch before this one is missing in the broker's log"
    DUPLICATE_SEQUENCE_NUMBER = 46, "the broker has a batch with this sequence number"
    INVALID_PRODUCER_EPOCH = 47, "a newer producer has taken over the producer id"
    INVALID_TXN_STATE = 48, "the state of the transaction does not allow this"
    INVALID_PRODUCER_ID_MAPPING = 49, "the producer id does not belong to the transactional id"
    INVALID_TRANSACTION_TIMEOUT = 50, "the transaction timeout is longer than the broker allows"
    CONCURRENT_TRANSACTIONS = 51, "the producer's previous transaction is not finished", BrokerBusy
    TRANSACTION_COORDINATOR_FENCED = 52, "there is a newer transaction coordinator"
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53, "the client may not use the transactional id", AuthorizationFailed
    SECURITY_DISABLED = 54, "security is switched off on the broker"
    OPERATION_NOT_ATTEMPTED = 55, "not tried, because another part of the request failed"
    KAFKA_STORAGE_ERROR = 56, "the broker's disk failed", LeaderMoved
    LOG_DIR_NOT_FOUND = 57, "the broker has no such log directory"
    SASL_AUTHENTICATION_FAILED = 58, "the broker does not accept the credentials"
    UNKNOWN_PRODUCER_ID = 59, "the broker has no state of this producer"
    REASSIGNMENT_IN_PROGRESS = 60, "the partition is being moved"
    DELEGATION_TOKEN_AUTH_DISABLED = 61, "the broker does not accept delegation tokens"
    DELEGATION_TOKEN_NOT_FOUND = 62, "the delegation token does not exist"
    DELEGATION_TOKEN_OWNER_MISMATCH = 63, "the delegation token belongs to another user"
    DELEGATION_TOKEN_REQUEST_NOT_ALLOWED = 64, "delegation tokens cannot be requested on this connection"
    DELEGATION_TOKEN_AUTHORIZATION_FAILED = 65, "the client may not use the delegation token", AuthorizationFailed
    DELEGATION_TOKEN_EXPIRED = 66, "the delegation token has expired"
    INVALID_PRINCIPAL_TYPE = 67, "the broker does not know this type of principal"
    NON_EMPTY_GROUP = 68, "the group has members"
    GROUP_ID_NOT_FOUND = 69, "the group does not exist"
    FETCH_SESSION_ID_NOT_FOUND = 70, "the broker has forgotten the fetch session", BrokerBusy
    INVALID_FETCH_SESSION_EPOCH = 71, "the fetch session is at another epoch", BrokerBusy
    LISTENER_NOT_FOUND = 72, "the leader has no listener that matches the one of this connection", LeaderMoved
    TOPIC_DELETION_DISABLED = 73, "topics cannot be deleted in this cluster"
    FENCED_LEADER_EPOCH = 74, "the partition has a newer leader than the request says", LeaderMoved
    UNKNOWN_LEADER_EPOCH = 75, "the request names a newer leader than the broker knows", LeaderMoved
    UNSUPPORTED_COMPRESSION_TYPE = 76, "the broker, or this version of the API, does not support the codec"
    STALE_BROKER_EPOCH = 77, "the broker has registered again since"
    OFFSET_NOT_AVAILABLE = 78, "the new leader does not know the end of the log yet", BrokerBusy
    MEMBER_ID_REQUIRED = 79, "the group must be joined with the member id of this answer"
    PREFERRED_LEADER_NOT_AVAILABLE = 80, "the preferred leader is not available", LeaderMoved
    GROUP_MAX_SIZE_REACHED = 81, "the group has the largest number of members that the broker allows"
    FENCED_INSTANCE_ID = 82, "another member has joined with the same static name"
    ELIGIBLE_LEADERS_NOT_AVAILABLE = 83, "no replica that could become leader is available", LeaderMoved
    ELECTION_NOT_NEEDED = 84, "the partition already has the requested leader", LeaderMoved
    NO_REASSIGNMENT_IN_PROGRESS = 85, "the partition is not being moved"
    GROUP_SUBSCRIBED_TO_TOPIC = 86, "the group still reads the topic"
    INVALID_RECORD = 87, "the broker's validation refused a record"
    UNSTABLE_OFFSET_COMMIT = 88, "an open transaction may still change these offsets", BrokerBusy
    THROTTLING_QUOTA_EXCEEDED = 89, "the request exceeds the client's quota", BrokerBusy
    PRODUCER_FENCED = 90, "a newer producer has this transactional id"
    RESOURCE_NOT_FOUND = 91, "the resource does not exist"
    DUPLICATE_RESOURCE = 92, "the resource is named twice, or exists already"
    UNACCEPTABLE_CREDENTIAL = 93, "the credential does not meet the rules"
    INCONSISTENT_VOTER_SET = 94, "the two sides know different sets of voters"
    INVALID_UPDATE_VERSION = 95, "the version of the update is not valid"
    FEATURE_UPDATE_FAILED = 96, "the features could not be changed"
    PRINCIPAL_DESERIALIZATION_FAILURE = 97, "the controller could not decode the client's principal"
    SNAPSHOT_NOT_FOUND = 98, "the snapshot does not exist"
    POSITION_OUT_OF_RANGE = 99, "the snapshot does not have this position"
    UNKNOWN_TOPIC_ID = 100, "the broker has no topic with this id", LeaderMoved
    DUPLICATE_BROKER_REGISTRATION = 101, "another broker has this id"
    BROKER_ID_NOT_REGISTERED = 102, "no broker has this id"
    INCONSISTENT_TOPIC_ID = 103, "the log belongs to a topic with another id", LeaderMoved
    INCONSISTENT_CLUSTER_ID = 104, "the broker belongs to another cluster"
    TRANSACTIONAL_ID_NOT_FOUND = 105, "the transactional id does not exist"
    FETCH_SESSION_TOPIC_ID_ERROR = 106, "the fetch session mixes names and ids of topics", BrokerBusy
    INELIGIBLE_REPLICA = 107, "the replica is not allowed to be in sync"
    NEW_LEADER_ELECTED = 108, "the change made another replica the leader"
    OFFSET_MOVED_TO_TIERED_STORAGE = 109, "the offset is no longer on the broker's own disk"
    FENCED_MEMBER_EPOCH = 110, "the group has moved the member to another epoch"
    UNRELEASED_INSTANCE_ID = 111, "a member that has not left has this static name"
    UNSUPPORTED_ASSIGNOR = 112, "the group's coordinator does not have this assignor"
    STALE_MEMBER_EPOCH = 113, "the member is at an older epoch than the group"
    MISMATCHED_ENDPOINT_TYPE = 114, "the request is for a controller and was sent to a broker, or the reverse"
    UNSUPPORTED_ENDPOINT_TYPE = 115, "the broker cannot describe endpoints of this type"
    UNKNOWN_CONTROLLER_ID = 116, "no controller has this id"
    UNKNOWN_SUBSCRIPTION_ID = 117, "the telemetry subscription is out of date"
    TELEMETRY_TOO_LARGE = 118, "the telemetry is larger than the broker accepts"
    INVALID_REGISTRATION = 119, "the controller does not accept the broker's registration"
    TRANSACTION_ABORTABLE = 120, "the transaction failed and must be aborted"
    INVALID_RECORD_STATE = 121, "the state of a share group's record does not allow this"
    SHARE_SESSION_NOT_FOUND = 122, "the broker has forgotten the share session", BrokerBusy
    INVALID_SHARE_SESSION_EPOCH = 123, "the share session is at another epoch", BrokerBusy
    FENCED_STATE_EPOCH = 124, "the state of the share group has a newer epoch"
    INVALID_VOTER_KEY = 125, "the voter key does not match the receiver's"
    DUPLICATE_VOTER = 126, "the voter is in the set of voters already"
    VOTER_NOT_FOUND = 127, "the voter does not exist"
    INVALID_REGULAR_EXPRESSION = 128, "the regular expression is not valid"
    REBOOTSTRAP_REQUIRED = 129, "the client must start again from its bootstrap addresses"
    STREAMS_INVALID_TOPOLOGY = 130, "the streams topology is not valid"
    STREAMS_INVALID_TOPOLOGY_EPOCH = 131, "the epoch of the streams topology is not valid"
    STREAMS_TOPOLOGY_FENCED = 132, "the streams topology is out of date"
    SHARE_SESSION_LIMIT_REACHED = 133, "the broker holds as many share sessions as it allows", BrokerBusy
