"""The state of a pipeline: its place, the ledger, the claim, and the integrity of its files."""
