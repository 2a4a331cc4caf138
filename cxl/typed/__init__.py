"""Typed programs: what they are compiled against, their tree, and what operators and backends read of them."""
