"""Reports: the data model, and one renderer a file."""

from gradlint.report._model import (
    SCHEMA_VERSION,
    SEVERITIES,
    VERDICTS,
    Argument,
    Check,
    Excerpt,
    Finding,
    Location,
    Report,
    SampleReport,
    TargetReport,
    TensorFacts,
    TorchVerdict,
    failing,
)

__all__ = [
    "SCHEMA_VERSION",
    "SEVERITIES",
    "VERDICTS",
    "Argument",
    "Check",
    "Excerpt",
    "Finding",
    "Location",
    "Report",
    "SampleReport",
    "TargetReport",
    "TensorFacts",
    "TorchVerdict",
    "failing",
]
