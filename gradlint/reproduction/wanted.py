"""Which finding a script is wanted for: plain data, known where torch is not."""

from __future__ import annotations

from dataclasses import dataclass

#: Rule → why no script shows its findings.
NOT_SHOWN: dict[str, str] = {
    "GL001": "the operator can't be loaded, so there is nothing to call",
    "GL002": "no inputs are known",
    "GL007": "it ran out of memory, which depends on the machine",
    "GL008": "it is about the state of the whole process, which is not compared by a script",
    "GL009": "the operator tells gradlint from other processes",
    "GL010": "it is about a comment in the source",
    "GL011": "it is about a comment in the source",
    "GL012": "it is about a comment in the source",
    "GL404": "the reference stands in a spec, which needs gradlint",
    "GL503": "second derivatives are refused openly, which the operator says itself",
    "GL802": "it needs a GPU",
    "GL803": "it needs a GPU",
    "GL804": "it needs a GPU",
    "GL805": "it needs a GPU and compute-sanitizer",
    "GL806": "it needs more than 2³¹ elements",
}


@dataclass(frozen=True)
class Wanted:
    """A finding to write a script for.

    Args:
        code, input, output, cause, sample, message: of the finding.
        file: the name of the script, and ``folder``, where it will be.
    """

    code: str
    input: str | None
    output: str | None
    cause: str | None
    sample: str | None
    message: str
    file: str
    folder: str
