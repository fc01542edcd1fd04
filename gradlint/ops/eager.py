"""Running compiled functions as they are written."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, nullcontext

import torch


def eager() -> AbstractContextManager[object]:
    """During the body, nothing is compiled, and what was compiled runs as it is written."""
    # Importing the compiler takes a second; where nobody has imported it, nothing is compiled.
    if "torch._dynamo" not in sys.modules:
        return nullcontext()
    stance: AbstractContextManager[object] = torch.compiler.set_stance("force_eager")
    return stance
