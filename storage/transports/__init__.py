"""Where bytes come from: local files (compressed or not), REST endpoints."""
