"""What EDIFACT and X12 share: segments, the rules of their envelopes, readers and writers."""
