"""YAML specs of operators: read strictly, turned into an op and samples, written by ``init``."""
