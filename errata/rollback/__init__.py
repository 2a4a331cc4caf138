"""Correlation rollback: failing records take their groups back."""
