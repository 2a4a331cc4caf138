"""Erasures: the values that leave, the search for them, the signed record, and the removal of what only older versions need."""
