"""Compositions: pipelines used as nodes."""
