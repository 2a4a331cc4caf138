"""Transform nodes: CXL on each record, validations, `distinct`."""
