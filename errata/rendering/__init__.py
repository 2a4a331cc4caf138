"""Answers, diagnostics and progress as text for people, and JSON, JSON lines and CSV for programs."""
