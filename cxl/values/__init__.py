"""The values of CXL in Python: their text, their JSON, the operators on them, how a record fails."""
