"""What the fork server imports once for all workers.

Only imports: running an operator here would start threads that a fork does not inherit.
"""

from __future__ import annotations

import gc
import importlib
import os
import pkgutil
import sys
import warnings
from collections.abc import Iterator

from gradlint.running.server import LOADS
from gradlint.trace.originals import at_the_start

#: Imported because it takes long; a module that is missing or broken is left to the worker, which
#: can report it.
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
    "numpy.random",
    "resource",
)

#: What ``torch.compile`` imports by its first use. It takes about as long as torch itself, so it is
#: loaded where the rules that trace are selected.
TRACING = (
    "torch._dynamo",
    "torch._dynamo.backends.debugging",
    "torch._inductor.debug",
    "torch.distributed.tensor.experimental._func_map",
    "torch.export",
    "sympy.tensor.tensor",
)

#: Packages of gradlint of which a worker may need any module.
PACKAGES = (
    "checking",
    "diagnosis",
    "experiments",
    "expressions",
    "inputs",
    "model",
    "native",
    "numerics",
    "ops",
    "rules",
    "spec",
    "targets",
    "trace",
)


def _names() -> Iterator[str]:
    load = os.environ.get(LOADS)
    if load == "torch":
        yield from ("torch", "gradlint.running.tool_jobs", "gradlint.running._worker")
        return
    yield from MODULES
    if load == "tracing":
        yield from TRACING
    for package in PACKAGES:
        name = f"gradlint.{package}"
        yield name
        path = getattr(sys.modules.get(name), "__path__", ())
        for module in pkgutil.walk_packages(path, f"{name}.", onerror=lambda _: None):
            yield module.name
    yield "gradlint.running.jobs"
    yield "gradlint.running._worker"


def _preload() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in _names():
            try:
                importlib.import_module(name)
            except BaseException:
                continue
    at_the_start()
    if "gradlint.trace.judge_integrity" in sys.modules:  # which imports torch
        sys.modules["gradlint.trace.judge_integrity"].judge_at_the_start()
    gc.collect()
    gc.freeze()  # keeps the pages of these objects shared between the forks


_preload()
