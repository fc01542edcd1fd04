"""Reports: the data model, and one renderer a file."""

from gradlint.report._model import (
    SCHEMA_VERSION,
    SEVERITIES,
    VERDICTS,
    Argument,
    Check,
    Excerpt,
    Finding,
    InputPower,
    Location,
    Prediction,
    Report,
    SampleReport,
    TargetReport,
    TensorFacts,
    TorchVerdict,
    failing,
)
from gradlint.report._render import FORMATS, render, stream_options

__all__ = [
    "FORMATS",
    "SCHEMA_VERSION",
    "SEVERITIES",
    "VERDICTS",
    "Argument",
    "Check",
    "Excerpt",
    "Finding",
    "InputPower",
    "Location",
    "Prediction",
    "Report",
    "SampleReport",
    "TargetReport",
    "TensorFacts",
    "TorchVerdict",
    "failing",
    "render",
    "stream_options",
]
