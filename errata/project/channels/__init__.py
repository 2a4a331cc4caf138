"""Channels: overlays on a pipeline file."""
