"""What EDIFACT and X12 share: segments and their rules."""
