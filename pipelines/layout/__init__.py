"""The columns of a table: which there are, how they grow, and how Delta and Parquet describe them."""
