"""How topics stand beside their tables: what is not loaded yet, how old it is, and how long it will still be there."""
