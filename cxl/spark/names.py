"""Columns that `apply` adds to a frame: the row passed every filter, the row failed, the number of the emitted record."""

PASS, FAILED, INDEX = "_cxl_pass", "_cxl_failed", "_cxl_index"
