"""Metrics files of runs, for `errata metrics collect`."""

from errata.telemetry.spool import collect, spooled

__all__ = ["collect", "spooled"]
