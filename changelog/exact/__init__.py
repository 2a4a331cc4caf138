"""Exact sums of doubles: each total is rounded once, in whatever order rows come and go."""
