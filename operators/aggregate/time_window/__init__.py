"""Aggregates over windows of event time."""
