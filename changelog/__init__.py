"""The algebra of changelogs: pure functions from op rows to op rows.

A changelog is an append-only sequence of rows. Each row has an operation (`+A`, `-R`, `-C`, `+C`), a key and a cause. The fold of a changelog
is its live rows. This package knows no files, tables or pipelines, and its functions give the same rows on Spark and on Sail.
"""
