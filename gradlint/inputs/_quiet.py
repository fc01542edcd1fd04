"""What user code may change for the whole process, put back after inference has tried it."""

from __future__ import annotations

import gc
import random
import sys
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

import torch


@contextmanager
def undisturbed() -> Iterator[None]:
    """Random states, default dtype, grad mode and warning filters are as before afterwards.

    What is compiled runs eagerly meanwhile: each attempt would be compiled anew, in seconds, and
    its error say what the compiler made of it.
    """
    numpy = sys.modules.get("numpy")
    state = torch.get_rng_state(), random.getstate(), numpy and numpy.random.get_state()
    collecting = gc.isenabled()
    # Syntax trees are many objects: a full collection among torch's own takes 0.2 s.
    gc.disable()
    dtype, grad = torch.get_default_dtype(), torch.is_grad_enabled()
    with warnings.catch_warnings(), _eager():
        warnings.simplefilter("ignore")
        try:
            yield
        finally:
            if collecting:
                gc.enable()
            torch.set_rng_state(state[0])
            random.setstate(state[1])
            if numpy is not None and state[2] is not None:
                numpy.random.set_state(state[2])
            if torch.get_default_dtype() != dtype:
                torch.set_default_dtype(dtype)
            torch.set_grad_enabled(grad)


def _eager() -> AbstractContextManager[object]:
    # Importing the compiler takes a second, and where nobody has, nothing is compiled.
    if "torch._dynamo" not in sys.modules:
        return nullcontext()

    stance: AbstractContextManager[object] = torch.compiler.set_stance("force_eager")
    return stance
