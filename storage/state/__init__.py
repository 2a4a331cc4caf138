"""The state folder of a pipeline: its place, ledger, lock and durable steps."""
