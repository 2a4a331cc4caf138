"""What touches the outside: engines, Delta tables, the run ledger, file formats, transports. Only this layer has effects."""
