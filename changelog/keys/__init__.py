"""Keys of rows: an order-preserving encoding, made one at a time, by the engine or from Arrow columns."""
