"""CXL's values in Python: as text, as JSON, under operators, and the failure of a record."""
