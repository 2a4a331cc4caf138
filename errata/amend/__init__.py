"""Epochs that no file brings: corrections, reverts, compaction."""
