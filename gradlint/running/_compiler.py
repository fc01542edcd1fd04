"""What ``torch.compile`` imports by its first use, which takes about as long as torch itself.

The process that reports imports this module to name it, so nothing is imported at the top.
"""

from __future__ import annotations

import gc
import importlib
import warnings
from contextlib import suppress

COMPILER = (
    "torch._dynamo",
    "torch._dynamo.backends.debugging",
    "torch._inductor.debug",
    "torch.distributed.tensor.experimental._func_map",
    "torch.export",
    "sympy.tensor.tensor",
)


def load_compiler() -> None:
    """Import it; what is missing or broken is left to its first use, which can report it."""
    # Nearly all that imports make stays: looking for garbage among it takes a third of their time.
    collecting = gc.isenabled()
    gc.disable()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in COMPILER:
            with suppress(Exception):
                importlib.import_module(name)
    gc.freeze()
    if collecting:
        gc.enable()
