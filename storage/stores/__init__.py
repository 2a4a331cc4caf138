"""Object stores: connections of `errata.toml`, and the requests that Errata makes of a store."""
