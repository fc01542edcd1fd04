"""Running an op while watching it: as a function of its inputs, and call by call."""
