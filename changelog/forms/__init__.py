"""The forms in which a changelog is shown and exported."""
