"""Values of files: declared types, their spellings and their text."""
