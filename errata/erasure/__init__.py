"""Erasure: records leave a state, its outputs and its history for good.

`errata.amend.erase` leads through it; `errata.amend.erasure_refusals` has what stops it. The modules, in the order in which they matter:

* `values` and `selection`: what tells an erased record, by its values and by its keys; `spelling`: how values are written; `named_values`: the ones that a command names.
* `quoting_corrections`: corrections as code that would keep it, which stop the erasure.
* `scrub`: which op rows and cells leave the tables; `nameless`: rows that stay for totals; `earlier_files` and `other_files`: files that are no tables.
* `record`, `blanked_ledger` and `kept_out`: what the ledger keeps, signed or as keyed hashes; `unread_records`: what a record that cannot be read may say.
* `removal` and `search` with `output_cells`: older versions go, and a search over all bytes proves it; `remains`: the way on where it found some.
"""
