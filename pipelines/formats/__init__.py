"""Opens tables, whatever their format is: the only room that knows all of them."""
