"""The subject that rules look at, and the experiments that they share."""
