"""db-benchmark: group-by and join over one table of random rows."""
