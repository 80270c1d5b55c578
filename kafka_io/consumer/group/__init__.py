"""Members of consumer groups from 0.9 on: the classic protocol, in which a member shares out the partitions."""
