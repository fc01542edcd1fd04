"""An op called through ``torch.compile``: traced by Dynamo and AOTAutograd, run op by op."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch

from gradlint.base.text import error_line
from gradlint.experiments.baseline_comparison import Difference
from gradlint.experiments.subject import Subject
from gradlint.experiments.transforms.reference_points import (
    Point,
    gradient_difference,
    output_difference,
    sample_point,
)
from gradlint.model.sample import map_tensors
from gradlint.trace.altered import pull_altered
from gradlint.trace.layouts import relaid
from gradlint.trace.op_io import OpRaised, Output
from gradlint.trace.problem import Problem

#: What an input is handed over as, by position and value; None for as it is.
Layout = Callable[[int, torch.Tensor], "torch.Tensor | None"]

Pulled = tuple[list[Output], "list[torch.Tensor | None]"]

#: Tests in the order in which a failure explains those after it.
_TESTS = (
    "test_schema",
    "test_autograd_registration",
    "test_faketensor",
    "test_aot_dispatch_dynamic",
)

#: What a failure of each means.
_MEANING = {
    "test_schema": "it mutates or aliases something other than its schema says",
    "test_autograd_registration": "its backward is not registered where autograd looks for it",
    "test_faketensor": "its fake kernel disagrees with the real one",
    "test_aot_dispatch_dynamic": "traced with symbolic shapes it behaves differently",
}

#: In the texts of those who say that there is no fake kernel.
_NO_FAKE = ("no fake impl", "no meta", "meta implementation", "fake implementation")


#: Of the operator of a graph that stands for a Function whose forward and backward were traced.
_NAME = "autograd_function_apply"


def read_ahead(path: str) -> None:
    """Where the compiler is loaded, let it read the names of the functions in the file at ``path``.
    It splits a file into tokens for this, and keeps them by the name of the file."""
    names = sys.modules.get("torch._dynamo.funcname_cache")
    if names is not None:
        names.get_funcname(path, 1)


class CompiledGraphs:
    """How many graphs were compiled, and how many Functions Dynamo traced in them, forward and
    backward."""

    def __init__(self) -> None:
        self.count = self.functions = 0


@contextmanager
def compiled(problem: Problem) -> Iterator[tuple[Problem, CompiledGraphs]]:
    """The op behind ``torch.compile``, with graph breaks allowed, and what it compiled.

    The partitioner is the plain one: that of the backend "aot_eager" imports Inductor, which takes
    a second and decides what is saved, not what is computed. Calls are counted as ``problem``'s.
    """
    import torch._dynamo  # noqa: PLC0415 (takes as long to load as torch)
    from torch._dynamo.backends.debugging import (  # noqa: PLC0415 (takes as long to load as torch)
        aot_eager_default_partitioner,
    )

    graphs = CompiledGraphs()

    def backend(graph: Any, inputs: Any) -> Any:
        graphs.count += 1
        graphs.functions += sum(_NAME in str(node.target) for node in graph.graph.nodes)
        return aot_eager_default_partitioner(graph, inputs)

    def transform(invoke: Callable[..., Any]) -> Callable[..., Any]:
        def on_copies(*given: Any) -> Any:
            return invoke(*map_tensors(given, torch.Tensor.clone))

        # Compiled by PyTorch 2.13, mark_dirty on an input of the graph loses the op's gradient.
        body = on_copies if problem.in_place else invoke
        found: Callable[..., Any] = torch.compile(body, backend=backend, dynamic=False)
        return found

    other = problem.through(transform)
    torch._dynamo.reset()
    try:
        with _unmeasured():
            yield other, graphs
    finally:
        torch._dynamo.reset()
        problem.forward_calls += other.forward_calls
        problem.backward_calls += other.backward_calls


@contextmanager
def _unmeasured() -> Iterator[None]:
    """Dynamo does not measure what only its own log shows: how long the guards of a compiled
    function take, for which it empties the processor's caches (30 ms each time, a tenth of a check
    of a small op by all rules), and with which settings it compiled."""
    import torch._dynamo.guards as guards  # noqa: PLC0415 (takes as long to load as torch)
    import torch._dynamo.utils as utils  # noqa: PLC0415 (takes as long to load as torch)

    metrics: Any = getattr(utils, "get_metrics_context", dict)()  # the names are of 2.7 and later
    with (
        _replaced(guards, "profile_guard_manager", lambda *_: 0.0),
        _replaced(metrics, "_on_exit", lambda *_: None),
    ):
        yield


@contextmanager
def _replaced(owner: Any, name: str, function: Callable[..., Any]) -> Iterator[None]:
    """``function`` takes the place of that ``name`` of ``owner``, where this PyTorch has it."""
    kept = getattr(owner, name, None)
    if kept is None:
        yield
        return
    setattr(owner, name, function)
    try:
        yield
    finally:
        setattr(owner, name, kept)


@contextmanager
def compiled_backward(*, traced: bool) -> Iterator[None]:
    """Backward calls of the body go through compiled autograd, where this PyTorch has it.

    Args:
        traced: whether Dynamo has traced the backward of every Function before. What compiled
            autograd records is then run as it is, with calls of backward in it; else Dynamo traces
            them there. For Functions that it has traced this was a third of the rule.
    """
    from torch._dynamo import compiled_autograd  # noqa: PLC0415 (takes as long to load as torch)

    enable = getattr(compiled_autograd, "_enable", None) or getattr(
        compiled_autograd, "enable", None
    )
    run: Callable[..., Any] = _as_it_is if traced else torch.compile(backend="eager", dynamic=False)
    around = nullcontext() if enable is None else enable(run)
    with around, _unmeasured():
        yield


def _as_it_is(graph: Any) -> Any:
    return graph


@contextmanager
def without_collecting() -> Iterator[None]:
    """In the body, which compiles, nobody looks for garbage among the many objects that this makes
    and that stay: it took a fifth of the time."""
    import torch._dynamo.config as config  # noqa: PLC0415 (takes as long to load as torch)

    name = "run_gc_after_compile"  # of PyTorch 2.8 and later
    collecting = gc.isenabled()
    gc.disable()
    try:
        with config.patch({name: False}) if hasattr(config, name) else nullcontext():
            yield
    finally:
        if collecting:
            gc.enable()


def why_not_compiled() -> str:
    """Why ``torch.compile`` can't run here; else ""."""
    try:
        import torch._dynamo  # noqa: PLC0415 (takes as long to load as torch)
    except (ImportError, AttributeError) as error:
        return f"torch.compile can't be loaded: {error_line(error)}{_in_place_of_triton()}"
    if not torch._dynamo.is_dynamo_supported():
        return "torch.compile does not work with this Python or on this platform"
    return ""


def _in_place_of_triton() -> str:
    """Says which folder of that name Python takes for Triton, if one; else ""."""
    found = sys.modules.get("triton")
    if found is None or getattr(found, "__file__", None):
        return ""
    folder = next(iter(getattr(found, "__path__", ())), "")
    return f" (the folder {folder} is taken for the package triton: run from elsewhere)"


def relaid_input(position: int, value: torch.Tensor) -> torch.Tensor | None:
    """``value`` as it lies in memory once transposed, or with gaps; None where it can't."""
    found = relaid(value, "transposed")
    return relaid(value, "strided") if found is None else found


def differences_from(subject: Subject, got: Pulled, point: Point) -> list[tuple[Difference, bool]]:
    """Outputs (True) that differ from ``point``, or else gradients (False) that do."""
    outputs, gradients = got
    wrong = [
        output_difference(subject, item.name, item.value.detach(), point.outputs[item.name])
        for item in outputs
        if item.name in point.outputs
    ]
    if any(wrong):
        return [(d, True) for d in wrong if d is not None]
    pairs = zip(gradients, point.gradients, strict=True)
    worse = [gradient_difference(subject, k, new, old) for k, (new, old) in enumerate(pairs)]
    return [(d, False) for d in worse if d is not None]


def usable_layout(subject: Subject) -> Layout | None:
    """Inputs that are not contiguous, where a plain call takes them as what they are (else GL703
    tells)."""
    try:
        plain = pull_altered(subject.problem, subject.run.cotangents, inputs=relaid_input)
    except OpRaised:
        return None
    return None if differences_from(subject, plain, sample_point(subject)) else relaid_input


@dataclass(frozen=True)
class OpcheckFailure:
    """One failed test of opcheck. ``absent``: nothing is registered, which torch says openly."""

    test: str
    meaning: str
    error: BaseException
    absent: bool
    others: list[str]


def opcheck(subject: Subject) -> OpcheckFailure | None:
    """The first of opcheck's tests that ``subject`` fails; None where all pass."""
    sample = subject.sample

    def passed(tensor: torch.Tensor) -> torch.Tensor:
        leaf = tensor.detach().clone().requires_grad_(tensor.requires_grad)
        # What writes to its inputs refuses leaves, as it must.
        return leaf.clone() if subject.problem.in_place else leaf

    args, kwargs = map_tensors((sample.args, sample.kwargs), passed)
    run: Any = torch.library.opcheck  # takes more kinds of operator than its type says
    results = run(subject.op.call, args, kwargs, test_utils=_TESTS, raise_exception=False)
    failed = {name: results[name] for name in _TESTS if results.get(name) != "SUCCESS"}
    if not failed:
        return None
    first, error = next(iter(failed.items()))
    absent = any(phrase in str(error).lower() for phrase in _NO_FAKE)
    return OpcheckFailure(first, _MEANING[first], error, absent, list(failed)[1:])
