"""A gate made of a run: which operators are chosen, what is accepted, what must be checked."""
