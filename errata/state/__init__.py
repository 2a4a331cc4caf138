"""What the state of a pipeline holds, as rows."""
