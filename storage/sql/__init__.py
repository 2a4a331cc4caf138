"""Databases: connections by name, statements that read, answers in batches, tables that receive rows. One module a kind of database."""
