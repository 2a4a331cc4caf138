"""Stream forms: how changelogs are shown and exported."""
