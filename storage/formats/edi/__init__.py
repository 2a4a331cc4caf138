"""The common part of EDIFACT and X12: segments, the rules of their envelopes, readers and writers."""
