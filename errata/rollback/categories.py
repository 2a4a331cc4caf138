"""Categories of rejects that have a meaning of their own. A module without libraries: a run that finds nothing new reads it too."""

LATE = "late_record"
"""A record that merely came late is rejected by itself: it did not fail."""
GROUP_REJECT = "aggregate_finalize"
"""A whole group that was rejected, not one of its records."""
CORRELATED = "correlated"
"""A record that failed only with its group."""
OVERFLOW = "group_size_exceeded"
"""A correlation group with too many records."""
TOLERATED = (LATE, OVERFLOW, CORRELATED)
"""Entries that end no run under fail_fast."""
