"""Combine nodes: records of several inputs joined by a predicate."""
