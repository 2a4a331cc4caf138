"""The interpreter: one record at a time, in Python."""
