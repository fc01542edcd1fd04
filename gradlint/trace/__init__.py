"""Run an op as a function of its inputs, and record what happens in each call."""
