"""One attempt: build the arguments of a plan, run forward and backward, and rate the outcome."""

from __future__ import annotations

import gc
import itertools
import random
import re
import sys
import types
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from gradlint.inputs._plan import Plan, describe
from gradlint.inputs._returned import returned_shapes
from gradlint.inputs.lazy import fresh, give_shapes, is_lazy
from gradlint.inputs.stand_ins import with_bound_closures
from gradlint.inputs.values import Built, build
from gradlint.model.op import Op
from gradlint.model.sample import map_tensors
from gradlint.ops.backed import is_backed
from gradlint.ops.eager import eager
from gradlint.ops.phase import phase, trying
from gradlint.ops.vjp import accumulated, refuses_grad, vjp
from gradlint.trace.random import seed_torch

#: Errors of the engine for a backward that breaks its contract: the op is at fault, not the inputs.
_CONTRACT_ERRORS = (
    "returned an incorrect number of gradients",
    "returned a gradient different than None",
    "expected Variable or None",
    "expected Tensor or None",
)
#: The error of the engine for a gradient that does not fit its input.
GRADIENT_SHAPE_ERROR = re.compile(
    r"invalid gradient at index (\d+) - got \[([\d, ]*)\] but expected shape compatible with "
    r"\[([\d, ]*)\]"
)
#: The error of the engine for a complex gradient of a real input.
COMPLEX_GRADIENT_ERROR = "input_is_complex == grad_is_complex"
#: Packages whose frames do not belong to the user.
_LIBRARIES = ("torch", "numpy", "gradlint", "contextlib", "functools")
#: Characters of a message, and frames of a traceback (first ones, last ones), that are kept.
_LONGEST_TEXT = 4000
_FIRST_FRAMES, _LAST_FRAMES = 6, 14
#: Step of the central difference that :func:`agrees` takes, and the relative error up to which it
#: agrees: roundoff and truncation leave far less in float64 (heuristic: 1e-8 on smooth functions).
_STEP, _AGREEMENT = 1e-5, 1e-3
#: Roundings of an output that a gradient which is zero may hold (heuristic).
LAST_DIGITS = 16.0
#: Size of outputs and gradients beyond which the inputs, which are about one, are not meant
#: (heuristic: an iteration that does not converge, and steps that are too large, go far beyond).
MOST_SIZE = 1e12
_FREED = "forward freed the memory of an input, which backward may read"
_LEAF_ERRORS = ("leaf Variable that requires grad", "view of a leaf Variable that requires grad")


@dataclass
class Frame:
    """A level of the traceback inside the user's code; ``instruction`` is the offset in its code
    object of what raised, by which the operations of one line are told apart."""

    filename: str
    line: int
    column: int
    names: dict[str, Any]
    globals: dict[str, Any]
    instruction: int = 0


@dataclass
class Failure:
    """Why an attempt failed: the phase, the exception's type and text, the user's frames."""

    phase: str
    kind: str
    text: str
    frames: list[Frame] = field(default_factory=list)
    attribute: str = ""

    def __str__(self) -> str:
        return f"{self.kind}: {self.text}" if self.text else self.kind


@dataclass
class Trial:
    """The outcome of an attempt.

    Args:
        score: 0 forward raised; 1 forward ran but no floating output requires grad; 2 outputs
            are not finite; 3 backward raised; 4 gradients are not finite or all zero;
            5 some input's gradient is zero or missing; 6 everything went well.
        failure: what was raised, in forward or backward.
        contract: backward broke the contract of autograd (the inputs are not to blame).
        built: the arguments, as passed.
        zero: number of differentiable tensors without a gradient or with an all-zero one.
        vanishing: likewise, with those whose gradient is zero apart from rounding.
        progress: lines and instructions that raised, in forward first, then in what it called;
            later ones mean that more code ran.
        shapes: of the outputs.
        reduced: position among the differentiable tensors → shape of the gradient that backward
            returned for it, where the engine summed that to the shape of the input. Forward then
            broadcast the input, which the author may not have meant.
        inside: whether a Function inside of the op returned a gradient with more axes than what it
            is for, which the engine summed likewise.
        real: positions of complex tensors for which backward returned real gradients, and complex
            ones for others.
        finite: whether all gradients that backward returned are finite.
    """

    score: int
    failure: Failure | None = None
    contract: bool = False
    built: Built | None = None
    zero: int = 0
    vanishing: int = 0
    progress: tuple[int, ...] = ()
    shapes: tuple[tuple[int, ...], ...] = ()
    reduced: dict[int, tuple[int, ...]] = field(default_factory=dict)
    inside: bool = False
    real: frozenset[int] = frozenset()
    finite: bool = True


def attempt(
    op: Op, plan: Plan, seed: int, keywords: frozenset[str], *, backward: bool = True
) -> Trial:
    """Run ``op`` once on fresh arguments made from ``plan``."""
    try:
        built = build(plan, seed, keywords)
    except Exception as error:
        return Trial(0, Failure("inputs", type(error).__name__, str(error)))
    trying(lambda: describe(plan))
    return run(op, built, plan.working, seed, backward=backward)


def run(op: Op, built: Built, working: str, seed: int, *, backward: bool = True) -> Trial:
    """Run ``op`` once on copies of the arguments in ``built``."""
    seed_torch(seed)
    leaves: list[torch.Tensor] = []
    try:
        with torch.enable_grad(), phase("forward"):
            try:
                outputs = _call(op, built, working, leaves, clone=False)
            except RuntimeError as error:
                if not any(text in str(error) for text in _LEAF_ERRORS):
                    raise
                leaves.clear()
                outputs = _call(op, built, working, leaves, clone=True)
            if backward and not all(map(is_backed, leaves)):
                # To read it ends the process, and so may the backward of a guessed inverse.
                raise RuntimeError(_FREED)
            tensors = list(_tensors(outputs))
            finite = _finite(tensors)
    except (Exception, SystemExit, KeyboardInterrupt) as error:
        failure = _failure("forward", error, _module_of(op))
        progress = tuple(n for frame in failure.frames for n in (frame.line, frame.instruction))
        return Trial(0, failure, built=built, progress=progress)
    if not tensors:
        text = "forward returned no tensor"
        return Trial(0, Failure("forward", "TypeError", text), built=built, progress=(10**6,))
    shapes = tuple(tuple(tensor.shape) for tensor in tensors)
    connected = [t for t in tensors if t.requires_grad and _inexact(t) and t.numel()]
    if not connected or not finite or not backward:
        score = 6 if connected and finite else 2 if connected else 1
        return Trial(score, built=built, shapes=shapes)
    return _run_backward(op, built, connected, leaves, shapes)


def _run_backward(
    op: Op,
    built: Built,
    connected: list[torch.Tensor],
    leaves: list[torch.Tensor],
    shapes: tuple[tuple[int, ...], ...],
) -> Trial:
    """The trial once forward went well: runs backward with random cotangents."""
    try:
        with torch.enable_grad(), phase("backward"):
            cotangents = [torch.randn_like(tensor.detach()) for tensor in connected]
            real: set[int] = set()
            inside: set[tuple[int, ...]] = set()
            with returned_shapes(connected, leaves, real, inside) as reduced:
                try:
                    gradients = vjp(connected, leaves, cotangents)
                except RuntimeError as error:
                    if not refuses_grad(error):
                        raise
                    gradients = accumulated(connected, leaves, cotangents)
            judged = _judged(gradients, built, shapes)
            vanishing = sum(map(_vanishes(connected), gradients, leaves))
            # Where all are real, the op may return too little; where some are, these are meant so.
            meant = frozenset(real) if len(real) < len(leaves) else frozenset()
            judged = replace(judged, reduced=reduced, inside=bool(inside))
            return replace(judged, vanishing=vanishing, real=meant)
    except (Exception, SystemExit, KeyboardInterrupt) as error:
        failure = _failure("backward", error, _module_of(op))
        if _lacks(error, built):
            return Trial(0, failure, built=built, progress=(10**6,))
        contract = any(text in failure.text for text in _CONTRACT_ERRORS)
        return Trial(3, failure, contract, built, shapes=shapes)


#: What Python says of a call with arguments that a function does not take.
_OTHER_CALL = re.compile(
    r"(\w+)(?:\.forward|\.__call__)?\(\) (?:got an unexpected|got multiple|takes|missing)"
)


def _lacks(error: BaseException, built: Built) -> bool:
    """Whether a function or module that gradlint chose lacks what backward looks for in it, or is
    called otherwise there: something else was meant, and the error says nothing of the op."""
    chosen = [
        value
        for value in (*built.args, *built.kwargs.values())
        if callable(value) and _home(value) in ("gradlint", "torch")
    ]
    if isinstance(error, AttributeError):
        owner = getattr(error, "obj", None)
        return _home(owner) == "gradlint" or any(owner is value for value in chosen)
    called = _OTHER_CALL.match(str(error)) if isinstance(error, TypeError) else None
    return called is not None and any(called[1] in _names(value) for value in chosen)


def _home(thing: object) -> str:
    """The package of a function, or of the class of an object."""
    home = getattr(thing, "__module__", None)
    return home.partition(".")[0] if isinstance(home, str) else ""


def _names(thing: object) -> tuple[str, str]:
    return getattr(thing, "__name__", ""), type(thing).__name__


def agrees(op: Op, built: Built, working: str, seed: int) -> bool:
    """Whether backward agrees with a central difference along one direction, roughly: a wrong
    gradient of any size counts, an error of rounding does not. True where that can't be told."""
    if working != "float64":
        return True
    generator = torch.Generator().manual_seed(seed)
    ways: list[torch.Tensor] = []

    def at(step: float) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
        count = itertools.count()

        def moved(tensor: torch.Tensor) -> torch.Tensor:
            if not tensor.requires_grad:
                return tensor
            way = ways[next(count)]
            return (tensor.detach() + step * way).requires_grad_(True)

        args, kwargs = map_tensors((built.args, built.kwargs), moved)
        leaves: list[torch.Tensor] = []
        seed_torch(seed)
        outputs = list(_tensors(_call(op, Built(args, kwargs), working, leaves, clone=False)))
        return [t for t in outputs if t.requires_grad and _inexact(t)], leaves

    def drawn(tensor: torch.Tensor) -> torch.Tensor:
        if tensor.requires_grad:
            if tensor.is_complex() or tensor.layout != torch.strided:
                raise TypeError("differences are taken of real, strided tensors")
            ways.append(torch.randn(tensor.shape, generator=generator, dtype=tensor.dtype))
        return tensor

    try:
        map_tensors((built.args, built.kwargs), drawn)
        with torch.enable_grad():
            outputs, leaves = at(0.0)
            if len(leaves) != len(ways):
                return True
            weights = [
                torch.randn(t.shape, generator=generator, dtype=torch.float64).to(t.dtype)
                for t in outputs
            ]
            gradients = vjp(outputs, leaves, weights)
            claimed = sum(
                float((gradient * way).sum())
                for gradient, way in zip(gradients, ways, strict=True)
                if gradient is not None
            )
            ends = [
                sum(float((w * t).sum()) for w, t in zip(weights, at(step)[0], strict=True))
                for step in (_STEP, -_STEP)
            ]
    except Exception:  # of the user's code: anything
        return True
    measured = (ends[0] - ends[1]) / (2 * _STEP)
    return abs(measured - claimed) <= _AGREEMENT * max(abs(measured), abs(claimed), 1e-3)


def reads_only(op: Op, built: Built, working: str, seed: int, place: int, count: int) -> bool:
    """Whether the outputs do not depend on what tensor ``place`` holds after its first ``count``
    entries; none at all with a ``count`` of zero. False where these entries are equal to the
    first one: they can't be exchanged for it then."""
    told = False

    def outputs(changed: bool) -> list[torch.Tensor]:
        seen = itertools.count()

        def other(tensor: torch.Tensor) -> torch.Tensor:
            nonlocal told
            made = tensor.detach().clone()
            if changed and next(seen) == place:
                made[count:] = made[:1] if count else made / 2
                told = not torch.equal(made, tensor)
            return made

        args, kwargs = map_tensors((built.args, built.kwargs), other)
        seed_torch(seed)
        return list(_tensors(_call(op, Built(args, kwargs), working, [], clone=False)))

    try:
        before, after = outputs(False), outputs(True)
    except Exception:
        return False
    return told and len(before) == len(after) and all(map(torch.equal, before, after))


def _judged(
    gradients: list[torch.Tensor | None], built: Built, shapes: tuple[tuple[int, ...], ...]
) -> Trial:
    given = [_dense(gradient) for gradient in gradients if gradient is not None]
    nonzero = [gradient for gradient in given if bool((gradient != 0).any())]
    zero = len(gradients) - len(nonzero)
    finite = _finite(given)
    if not nonzero or not finite:
        return Trial(4, built=built, zero=zero, shapes=shapes, finite=finite)
    return Trial(5 if zero else 6, built=built, zero=zero, shapes=shapes)


def _vanishes(outputs: list[torch.Tensor]) -> Callable[[torch.Tensor | None, torch.Tensor], bool]:
    """Whether the gradient of a tensor is zero apart from rounding: where it moves by as much as it
    is large, the outputs change in their last digits only."""
    largest = max(float(_dense(output).abs().max()) for output in outputs)

    def vanishes(gradient: torch.Tensor | None, leaf: torch.Tensor) -> bool:
        if gradient is None or not leaf.numel():
            return True
        change = float((_dense(gradient).abs() * _dense(leaf).abs()).max())
        return change <= LAST_DIGITS * torch.finfo(leaf.dtype).eps * largest

    return vanishes


def _call(op: Op, built: Built, working: str, leaves: list[torch.Tensor], *, clone: bool) -> Any:
    def place(tensor: torch.Tensor) -> torch.Tensor:
        made = tensor.detach().clone()
        if not tensor.requires_grad:
            return made
        made.requires_grad_(True)
        leaves.append(made)
        return made.clone() if clone else made

    args, kwargs = map_tensors((built.args, built.kwargs), place)
    if op.module is None:
        return with_bound_closures(op.call)(*args, **kwargs)
    dtype = getattr(torch, working)
    # A module may keep state with the shapes of one attempt, which would make the next one fail.
    module = fresh(op.module)
    if is_lazy(module):
        give_shapes(module, built.args, built.kwargs, dtype)
    state = {}
    for name, value in (*module.named_parameters(), *module.named_buffers()):
        held = value.detach().clone()
        if held.is_floating_point():
            held = held.to(dtype)
        if value.requires_grad:
            held.requires_grad_(True)
            leaves.append(held)
        state[name] = held
    if module is not op.module:
        module.to(dtype)  # backward may read the module itself
    return torch.func.functional_call(module, state, args, kwargs)


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from _tensors(part)
    elif isinstance(value, dict):
        for part in value.values():
            yield from _tensors(part)


def _inexact(tensor: torch.Tensor) -> bool:
    return tensor.is_floating_point() or tensor.is_complex()


def _dense(tensor: torch.Tensor) -> torch.Tensor:
    values = tensor.detach()
    return values if values.layout == torch.strided else values.to_dense()


def _finite(tensors: list[torch.Tensor]) -> bool:
    """Whether all numbers are finite, and none is so large that the inputs can't be meant."""
    for tensor in tensors:
        if _inexact(tensor) and not bool((_dense(tensor).abs() <= MOST_SIZE).all()):
            return False
    return True


def _module_of(op: Op) -> str:
    """The module of the op: its frames count as the user's, even within a library."""
    return getattr(op.function or op.defining or op.call, "__module__", None) or ""


def _failure(phase: str, error: BaseException, home: str) -> Failure:
    try:
        text = str(error)
    except BaseException:
        text = "(its message can't be read)"
    found = Failure(
        phase, type(error).__name__, text[:_LONGEST_TEXT], _frames(error.__traceback__, home)
    )
    if isinstance(error, AttributeError):
        found.attribute = getattr(error, "name", "") or ""
    error.__traceback__ = None
    return found


def _frames(trace: types.TracebackType | None, home: str) -> list[Frame]:
    """The user's frames, outermost first; torch's, numpy's and gradlint's own are left out."""
    levels = []
    while trace is not None:
        module = trace.tb_frame.f_globals.get("__name__") or ""
        root = module.split(".")[0]
        if module == home or root not in _LIBRARIES:
            levels.append((trace.tb_frame, trace.tb_lineno, trace.tb_lasti))
        trace = trace.tb_next
    if len(levels) > _FIRST_FRAMES + _LAST_FRAMES:
        levels = levels[:_FIRST_FRAMES] + levels[-_LAST_FRAMES:]
    return [
        Frame(
            frame.f_code.co_filename,
            line,
            _column(frame.f_code, last),
            dict(frame.f_locals),
            frame.f_globals,
            last,
        )
        for frame, line, last in levels
    ]


def _column(code: types.CodeType, instruction: int) -> int:
    """Column of an instruction; 0 before Python 3.11, which does not keep it."""
    if not hasattr(code, "co_positions"):
        return 0
    position = next(itertools.islice(code.co_positions(), instruction // 2, None), None)
    return (position[2] or 0) if position else 0


@contextmanager
def process_state_restored() -> Iterator[None]:
    """Restore what user code may change for the whole process: random states, default dtype, grad
    mode and warning filters.

    Compiled functions run eagerly in the body: each attempt would be compiled anew, which takes
    seconds, and errors would describe what the compiler made of the code. PyTorch checks the parts
    of sparse tensors in it, which it does not by default: a guessed index beyond their shape is an
    error then, and does not write to memory that is not theirs.
    """
    numpy = sys.modules.get("numpy")
    state = torch.get_rng_state(), random.getstate(), numpy and numpy.random.get_state()
    collecting = gc.isenabled()
    # Syntax trees are many objects: a full collection among torch's own takes 0.2 s.
    gc.disable()
    dtype, grad = torch.get_default_dtype(), torch.is_grad_enabled()
    checked = torch.sparse.check_sparse_tensor_invariants()
    with warnings.catch_warnings(), eager(), checked:
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
