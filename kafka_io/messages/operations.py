"""What whoever asks may do, as bits of an int32 (KIP-430)."""

NO_OPERATIONS = -(2**31)  # nobody asked for them
