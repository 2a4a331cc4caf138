"""Columns of an applied program: every filter let the row through; the row failed; the element's number behind emit each."""

PASS, FAILED, INDEX = "_cxl_pass", "_cxl_failed", "_cxl_index"
