"""Keys of rows: an order-preserving encoding of tuples, in Python, on engines and from Arrow columns."""
