"""Corrections as code: files beside the pipeline that say what a cell is and what it should be."""
