"""What differs between two versions of a source."""
