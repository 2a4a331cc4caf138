"""How answers, diagnostics and progress are shown: text for people, JSON, JSON lines and CSV for programs."""
