"""The basis of every run of an op: the current phase, and the vector-Jacobian product."""
