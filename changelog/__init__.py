"""The changelog algebra: pure functions from DataFrames of op rows to DataFrames of op rows.

A changelog is an append-only sequence of rows that each carry an operation (`+A`, `-R`, `-C`, `+C`), a key and a cause;
its fold is the live state. Nothing here knows of files, tables or pipelines, and every function gives the same rows on
Spark and on Sail.
"""
