"""The colours of pages, light and dark, and which of them lie on each other."""

from __future__ import annotations

from collections.abc import Mapping

CAUSES = ("ingest", "correction", "recompute", "rollback", "readmit", "logic", "revert", "late")
"""The kinds of causes, each with a pair of colours: `<cause>` behind `<cause>-text`."""

LIGHT: Mapping[str, str] = {
    "ground": "#ffffff", "panel": "#f4f6f8", "edge": "#cfd6de", "frame": "#7b8794", "text": "#1b2430", "soft": "#4d5966", "link": "#0b57c2", "mark": "#fff3c4",
    "add": "#1a7f37", "take": "#b42318", "fix": "#8a5a00", "line": "#0b57c2",
    "ingest": "#d7e8fb", "ingest-text": "#0b3d7a", "correction": "#fde2b8", "correction-text": "#6b3f00", "recompute": "#e4e7ec", "recompute-text": "#344054",
    "rollback": "#fbd5d0", "rollback-text": "#8c1a10", "readmit": "#d2f0da", "readmit-text": "#135f2a", "logic": "#e6dcfb", "logic-text": "#4a1fb8",
    "revert": "#ffd6ea", "revert-text": "#8a1254", "late": "#d5f0f2", "late-text": "#0b5a63",
}  # fmt: skip
DARK: Mapping[str, str] = {
    "ground": "#11161d", "panel": "#1a212b", "edge": "#364150", "frame": "#8592a3", "text": "#e6ebf1", "soft": "#aab6c4", "link": "#7db7ff", "mark": "#4a3c08",
    "add": "#5dd27f", "take": "#ff8d80", "fix": "#f0b94a", "line": "#7db7ff",
    "ingest": "#123a68", "ingest-text": "#cfe4ff", "correction": "#5a3a06", "correction-text": "#ffe3b3", "recompute": "#37414f", "recompute-text": "#e1e7ee",
    "rollback": "#6d1d15", "rollback-text": "#ffd9d4", "readmit": "#12482a", "readmit-text": "#c9f4d7", "logic": "#3d2680", "logic-text": "#e5dcff",
    "revert": "#641745", "revert-text": "#ffd8eb", "late": "#0e454b", "late-text": "#cdf2f5",
}  # fmt: skip

TEXT_PAIRS = (
    *((text, ground) for ground in ("ground", "panel") for text in ("text", "soft", "link", "add", "take", "fix")),
    ("text", "mark"), ("add", "mark"), ("take", "mark"), ("ground", "link"), *((f"{cause}-text", cause) for cause in CAUSES),
)  # fmt: skip
"""Text and what it lies on."""
GRAPHIC_PAIRS = tuple((graphic, ground) for ground in ("ground", "panel") for graphic in ("frame", "line", "add", "take", "fix"))
"""Lines and shapes that say something, and what they lie on."""


def custom_properties() -> str:
    """Return the colours as custom properties of CSS."""
    light, dark = (" ".join(f"--{name}: {value};" for name, value in colours.items()) for colours in (LIGHT, DARK))
    return f":root {{ color-scheme: light dark; {light} }}\n@media (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}\n"
