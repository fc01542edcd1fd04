"""YAML specs of operators: read strictly, turned into an op and samples, written by ``init``."""

from gradlint.spec._load import load, loads
from gradlint.spec._model import OpSpec
from gradlint.spec._open import open_spec
from gradlint.spec._plan import sample_labels
from gradlint.spec._schema import json_schema
from gradlint.spec._starter import dump_starter

__all__ = ["OpSpec", "dump_starter", "json_schema", "load", "loads", "open_spec", "sample_labels"]
