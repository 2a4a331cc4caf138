"""From text to an untyped tree and back."""
