"""From an op to the samples it is run on."""

from gradlint.inputs._sample import Sample, map_tensors, positional_names, short_text

__all__ = ["Sample", "map_tensors", "positional_names", "short_text"]
