"""Deliveries whose records say what they do: records that correct others, change feeds, records with versions.

A record becomes one or more *events* of a key (`marking`). Events have an order (`order`): by version, then by file, then by record. `replay` makes of the
events of some keys what is live after them. `deliveries` decides which earlier events a run has to look at, and keeps what later runs have to know.
Where the newest event of a key decides alone, `winners` keeps no others.
"""
