"""Everything outside of Errata: engines, Delta tables, the ledger, files, formats and services. Only this package has effects."""
