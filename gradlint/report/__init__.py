"""Reports: the data model, and one renderer a file."""
