"""Delta tables: changelogs, outputs and sources."""
