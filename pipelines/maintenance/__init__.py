"""Work on loaded tables: show their history, compare them with the brokers, repair and clean them."""
