"""Rules for what a table keeps of the records of a topic."""
