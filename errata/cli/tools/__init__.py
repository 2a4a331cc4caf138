"""Commands for people who write pipelines: cases and notebooks, each imported when it is called."""
