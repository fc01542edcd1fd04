"""Numbers that a report shows beside its verdicts: costs, powers, and facts about tensors."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class InputPower:
    """How sharply one input was judged.

    Args:
        name: of the input.
        verdict: "agrees", "differs", "unsure" or "rounded" (agrees, to fewer digits than seen).
        resolution: smallest relative error of its gradient that would have been seen.
        element_resolution: smallest error of a single element that would have been seen, relative
            to the largest one.
        noise_factor: measured noise over that of rounding the outputs once.
    """

    name: str
    verdict: str
    resolution: float
    element_resolution: float
    noise_factor: float


@dataclass
class Prediction:
    """What the rules of a family take on one sample, predicted before they run.

    Args:
        sample: its label.
        family: "GL4" and "GL5" (their measurements), or "others" for all further rules.
        forward_calls, backward_calls: what rules that pass take at most.
        usual_forward_calls, usual_backward_calls: what they take where the function is smooth and
            its gradient right.
        duration_s: of the usual calls, by the time that one took.
        memory_bytes: held at the peak beside the sample itself, about.
    """

    sample: str
    family: str
    forward_calls: int
    backward_calls: int
    usual_forward_calls: int
    usual_backward_calls: int
    duration_s: float
    memory_bytes: int


@dataclass
class TensorFacts:
    """What the anatomy shows of one tensor (``-v``). ``role``: argument, output,
    grad_output, gradient (as returned by backward, before the engine) or saved."""

    role: str
    name: str
    shape: list[int] | None = None
    dtype: str | None = None
    stride: list[int] | None = None
    nan: int = 0
    inf: int = 0
    min: float | None = None
    max: float | None = None
    norm: float | None = None
    nbytes: int = 0
    text: str = ""
