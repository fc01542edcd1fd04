"""What every run of an op goes through: the phase it is in, and its vector-Jacobian product."""
