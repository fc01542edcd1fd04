"""What the fork server imports once for all workers.

Only imports: running an operator here would start threads that a fork does not inherit.
"""

from __future__ import annotations

import gc
import importlib
import warnings

#: Imported for their weight; one that is missing or broken is left to the worker, which can
#: report it.
MODULES = (
    "torch",
    "torch.autograd.forward_ad",
    "torch.autograd.gradcheck",
    "torch._decomp.decompositions_for_jvp",
    "torch.func",
    "torch.fx.experimental.symbolic_shapes",
    "torch.library",
    "torch.testing",
    "torch.utils._device",
    "ctypes",
    "inspect",
    "resource",
    "gradlint.targets",
    "gradlint.targets.source",
    "gradlint.inputs",
    "gradlint.spec",
    "gradlint.trace",
    "gradlint.trace._problem",
    "gradlint.trace._record",
    "gradlint.trace._state",
    "gradlint.numerics",
    "gradlint.diagnosis",
    "gradlint.rules",
    "gradlint.rules._examine",
    "gradlint.running._jobs",
    "gradlint.running._worker",
)


def _preload() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in MODULES:
            try:
                importlib.import_module(name)
            except BaseException:
                continue
    gc.collect()
    gc.freeze()  # keeps the pages of these objects shared between the forks


_preload()
