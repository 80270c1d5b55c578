"""The status of topics and their tables: what is not loaded yet, how old it is, and when retention may delete it."""
