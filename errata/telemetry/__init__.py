"""Metrics of runs, for files, Prometheus and OpenLineage."""
