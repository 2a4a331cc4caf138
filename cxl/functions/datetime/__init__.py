"""Format strings of dates and times."""
