"""From an op to the samples it is run on."""
