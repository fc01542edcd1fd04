"""GL1: the contract of backward."""
