"""The kernels in ``examples/triton``: those that are right, and what each faulty twin shows."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "examples" / "triton"

#: Why nothing of them can run here; else "".
MISSING = (
    ""
    if importlib.util.find_spec("triton") is not None
    else "triton is not installed: pip install triton"
)

RIGHT = ("elementwise", "layer_norm", "softmax")


@dataclass(frozen=True)
class Twin:
    """A faulty twin: ``name`` of its file and spec, and ``codes`` of which one at least finds it,
    in the interpreter and on a GPU."""

    name: str
    codes: tuple[str, ...]

    @property
    def spec(self) -> str:
        """Its specification, relative to the root of the checkout."""
        return f"examples/triton/faulty/{self.name}.yaml"


#: Sorted by name. What lies beyond the end of a row that is read unmasked may change, or end the
#: process.
TWINS = (
    Twin("half_accumulation", ("GL404", "GL801")),
    Twin("int32_offsets", ("GL806",)),
    Twin("missing_mask", ("GL404", "GL606", "GL005")),
    Twin("wrong_stride", ("GL701",)),
)

#: All codes that find one: each alone takes seconds, all rules minutes.
CODES = ",".join(sorted({code for twin in TWINS for code in twin.codes if code != "GL005"}))


def right_specs() -> list[str]:
    """The specifications of the right kernels, relative to the root of the checkout."""
    return [f"examples/triton/{name}.yaml" for name in RIGHT]
