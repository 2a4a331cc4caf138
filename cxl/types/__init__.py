"""The types of CXL and their rules."""
