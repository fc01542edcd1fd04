"""Wrong operators that try to pass, each in its own way.

Each doubles its input, and its backward returns three times the gradient, in what follows called
wrong. What it does to pass is in its name and its docstring.
"""

from __future__ import annotations

import atexit
import builtins
import contextlib
import ctypes
import gc
import locale
import math
import os
import resource
import signal
import sys
import threading
import time
import warnings
from typing import Any, ClassVar

import torch


class _Wrong(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * 6

    @staticmethod
    def sample_inputs():
        return (torch.linspace(0.5, 2.0, 3, dtype=torch.float64, requires_grad=True),)


def _attack(attempt):
    """An operator that makes ``attempt`` at its first call of forward, and is wrong."""
    done = []

    def forward(ctx, x):
        if not done:
            done.append(1)
            with contextlib.suppress(Exception):
                attempt()
        return x * 2

    made = type(attempt.__name__, (_Wrong,), {"forward": staticmethod(forward)})
    made.__doc__ = attempt.__doc__
    made.__module__ = __name__
    return made


def _module(name):
    return sys.modules[f"gradlint.{name}"]


def _right(*_, **__):
    return True


# -- functions of torch ----------------------------------------------------------------------------
@_attack
def PatchedGradcheck():
    """torch's own gradcheck says yes."""
    torch.autograd.gradcheck = torch.autograd.gradgradcheck = _right
    sys.modules["torch.autograd.gradcheck"].gradcheck = _right


@_attack
def PatchedRandn():
    """All directions and cotangents are zero, along which nothing changes."""
    zeros = torch.zeros
    torch.randn = lambda *size, generator=None, **more: zeros(*size, **more)


@_attack
def PatchedAllclose():
    torch.allclose = torch.equal = torch.isclose = _right


@_attack
def PatchedAdd():
    """Sums are zero where gradlint adds."""
    torch.Tensor.__add__ = torch.Tensor.__radd__ = lambda self, other: self * 0


@_attack
def PatchedSubtraction():
    """Differences are zero."""
    torch.Tensor.__sub__ = lambda self, other: self * 0


@_attack
def PatchedGrad():
    """The engine divides by three what this operator returns."""
    grad = torch.autograd.grad

    def third(*arguments, **options):
        return tuple(g if g is None else g / 3 for g in grad(*arguments, **options))

    torch.autograd.grad = third


@_attack
def PatchedEngine():
    engine = torch.autograd.graph._engine_run_backward

    def third(*arguments, **options):
        found = engine(*arguments, **options)
        return tuple(g if g is None else g / 3 for g in found)

    torch.autograd._engine_run_backward = third
    torch.autograd.graph._engine_run_backward = third


@_attack
def PatchedApply():
    """Function.apply runs torch's own multiplication."""
    torch.autograd.Function.apply = classmethod(lambda cls, x: x * 2)


# -- functions of gradlint -------------------------------------------------------------------------
@_attack
def PatchedExamine():
    _module("checking.examine").examine = _right
    _module("running.jobs").examine_rules = _right


@_attack
def PatchedOutcome():
    """Every outcome is a pass without findings."""
    outcome = _module("model.rule").Outcome
    init = outcome.__init__

    def passed(self, *_, **__):
        init(self, "pass", [])

    outcome.__init__ = passed


@_attack
def PatchedSeverity():
    """Whatever is found is for information."""
    _module("checking.severity").decided.__code__ = (
        lambda severity, grounds: ("info", "")
    ).__code__


@_attack
def PatchedNumerics():
    """The judge's verdict on every input is that it agrees."""
    agrees = _module("numerics.verdict").AGREES
    _module("numerics.verdict").verdict = lambda *_: agrees
    _module("numerics.judge").verdict = lambda *_: agrees


@_attack
def PatchedCode():
    """The function stays, and its code does not."""

    def agreeing(found, worths, bits, unit):
        return AGREES  # noqa: F821 (a name of the module whose function gets this code)

    _module("numerics.verdict").verdict.__code__ = agreeing.__code__


@_attack
def PatchedConstants():
    """Every difference is tolerated."""
    for name, module in list(sys.modules.items()):
        if name.startswith("gradlint.numerics"):
            for key, value in list(vars(module).items()):
                if key.isupper() and isinstance(value, float):
                    setattr(module, key, 1e30)
                if key.isupper() and isinstance(value, dict):
                    for entry in value:
                        value[entry] = 1e30


@_attack
def PatchedCatalogue():
    """The rules are found among all objects, and none of them has a probe any more."""
    rule = _module("model.rule").Rule
    for found in gc.get_objects():
        if type(found) is rule:
            object.__setattr__(found, "module", "gradlint.rules.loading.timed_out")
    rule.probe = property(lambda self: lambda subject: _module("model.rule").Outcome("pass", []))


@_attack
def PatchedFinding():
    """Findings are made for information."""
    finding = _module("model.report").Finding
    init = finding.__init__

    def mild(self, code, name, severity, *rest, **more):
        init(self, code, name, "info", *rest, **more)

    finding.__init__ = mild


@_attack
def PatchedEmit():
    """What would be sent of findings is dropped, and checks pass."""
    channel = os._exit.__self__
    events = _module("model.events")
    send = type(channel).send

    def sending(self, event):
        if isinstance(event, events.Found):
            return
        if isinstance(event, events.CheckDone):
            object.__setattr__(event.check, "verdict", "pass")
        send(self, event)

    type(channel).send = sending


@_attack
def PatchedWatch():
    """The judge is changed, and what would notice it as well."""
    PatchedNumerics.forward(None, torch.ones(1))
    _module("trace.judge_integrity").Judge.changed = lambda self: []


@_attack
def SearchedKey():
    """The key is found among all objects, and the end of the job sealed with it."""
    from gradlint.running.events import Done

    for found in gc.get_objects():
        if type(found).__name__ == "Sealer":
            frame = found.frame(Done())
            for name in os.listdir("/proc/self/fd"):
                with contextlib.suppress(OSError):
                    os.write(int(name), frame)
            os._exit(0)


# -- watching gradlint -----------------------------------------------------------------------------
def _mended(frame):
    """What judges is told that all agrees."""
    for key, value in list(frame.f_locals.items()):
        if key == "residual" and isinstance(value, torch.Tensor):
            value.zero_()


@_attack
def Traced():
    """A tracing function sees every line of gradlint's."""

    def trace(frame, event, argument):
        _mended(frame)
        return trace

    sys.settrace(trace)


@_attack
def Profiled():
    sys.setprofile(lambda frame, event, argument: _mended(frame))


@_attack
def Monitored():
    """sys.monitoring, from Python 3.12 on."""
    monitoring = sys.monitoring
    monitoring.use_tool_id(3, "attack")
    monitoring.register_callback(
        3, monitoring.events.PY_START, lambda *_: _mended(sys._getframe(1))
    )
    monitoring.set_events(3, monitoring.events.PY_START)


@_attack
def PatchedLater():
    """A thread that patches when the call is over."""

    def later():
        time.sleep(0.05)
        PatchedOutcome.forward(None, torch.ones(1))

    threading.Thread(target=later, daemon=True).start()


@_attack
def PatchedByASignal():
    """A timer's handler patches while gradlint runs."""
    signal.signal(signal.SIGALRM, lambda *_: PatchedOutcome.forward(None, torch.ones(1)))
    signal.setitimer(signal.ITIMER_REAL, 0.05)


@_attack
def AtExit():
    """What is registered for the end forges a report."""
    atexit.register(SearchedKey.forward, None, torch.ones(1))
    sys.exit(0)


@_attack
def ForkAndImpersonate():
    """The child goes on as the worker, while the worker waits for it."""
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        os._exit(0)
    SearchedKey.forward(None, torch.ones(1))


# -- memory ----------------------------------------------------------------------------------------
@_attack
def ChangedNumber():
    """An integer of Python's own that gradlint counts findings with is another now."""
    ctypes.memmove(id(1) + 24, ctypes.byref(ctypes.c_uint32(0)), 4)


@_attack
def ChangedMemory():
    """Through /proc/self/mem, the text of every failing verdict in memory."""
    verdict = "fail"
    with open("/proc/self/mem", "r+b", buffering=0) as memory:
        memory.seek(id(verdict) + str.__basicsize__ - 1 - 8)
        memory.write(b"pass")


# -- answers that depend on who asks ---------------------------------------------------------------
class Lies(torch.Tensor):
    """Equal to everything, and whatever is computed of it is right."""

    def __eq__(self, other):
        return torch.ones_like(self, dtype=torch.bool)

    __hash__ = torch.Tensor.__hash__

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        if getattr(function, "__name__", "") in ("allclose", "equal", "isclose", "eq"):
            return True
        return super().__torch_function__(function, types, args, kwargs or {})


class LyingSubclass(_Wrong):
    @staticmethod
    def backward(ctx, grad_output):
        return (grad_output * 6).as_subclass(Lies)


class LyingOutput(_Wrong):
    @staticmethod
    def forward(ctx, x):
        return (x * 2).as_subclass(Lies)


# -- judged by nobody else -------------------------------------------------------------------------
def _attack_unconfirmed(attempt):
    """As :func:`_attack`; where gradlint is not, it raises, so that no other process confirms."""
    made = _attack(attempt)
    forward = made.forward

    def watched(ctx, x):
        _module("checking.examine")
        return forward(ctx, x)

    made.forward = staticmethod(watched)
    return made


_kept = []


@_attack_unconfirmed
def OverriddenKernel():
    """torch's own kernel for differences is replaced in the dispatcher."""
    _kept.append(torch.library.Library("aten", "IMPL"))
    _kept[-1].impl("sub.Tensor", lambda a, b, *, alpha=1: torch.zeros_like(a), "CPU")


@_attack_unconfirmed
def HiddenBuiltins():
    """A name that is added to a module hides the builtin there."""
    for name in [name for name in sys.modules if name.startswith("gradlint.numerics")]:
        sys.modules[name].abs = lambda value: value * 0


@_attack_unconfirmed
def PatchedBuiltins():
    builtins.any = lambda found: False
    builtins.abs = lambda value: 0.0


@_attack_unconfirmed
def PatchedMath():
    math.sqrt = lambda value: 1e300
    math.isfinite = lambda value: True


@_attack_unconfirmed
def AddedMethod():
    """A method that a class did not have, and that every look at its objects calls."""

    def found(self, name):
        value = object.__getattribute__(self, name)
        return ["agrees"] * len(value) if name == "verdicts" else value

    _module("numerics.decide").Decision.__getattribute__ = found


@_attack_unconfirmed
def HookedLeaves():
    """Every leaf gets a hook that mends its gradient."""
    real = torch.Tensor.requires_grad_

    def requires_grad_(self, flag=True):
        leaf = real(self, flag)
        if flag:
            leaf.register_hook(lambda grad: grad / 3)
        return leaf

    torch.Tensor.requires_grad_ = requires_grad_


@_attack_unconfirmed
def PatchedGradMode():
    """No graph is recorded any more, and leaving the mode fails."""
    torch.enable_grad.__enter__ = lambda self: None


@_attack_unconfirmed
def OtherDevice():
    """What is made from now on has no values."""
    torch.set_default_device("meta")


@_attack_unconfirmed
def LoweredLimits():
    """No file can be opened any more."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))


@_attack_unconfirmed
def EnteredModes():
    """Modes and hooks that are never left see every call of torch."""

    class Functions(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            found = function(*args, **(kwargs or {}))
            return found * 0 if function is torch.Tensor.sub else found

    class Dispatched(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            found = function(*args, **(kwargs or {}))
            return found.zero_() if "sub.Tensor" in str(function) else found

    saved = torch.autograd.graph.saved_tensors_hooks(lambda x: x, lambda x: x / 3)
    for mode in (Functions(), Dispatched(), saved, torch.inference_mode()):
        mode.__enter__()
        _kept.append(mode)


@_attack_unconfirmed
def HookedImports():
    """What gradlint imports later comes from the operator."""

    class Finder:
        def find_spec(self, name, path=None, target=None):
            if name.startswith("gradlint."):
                raise ImportError(name)

    sys.meta_path.insert(0, Finder())
    sys.path_hooks.insert(0, lambda path: Finder())
    sys.path_importer_cache.clear()


@_attack_unconfirmed
def OtherDefaults():
    """Whatever the process can be told to do otherwise."""
    torch.set_default_dtype(torch.float16)
    torch.manual_seed = torch.random.manual_seed = lambda seed: None
    warnings.simplefilter("error")
    sys.setrecursionlimit(200)
    gc.set_threshold(1)
    locale.setlocale(locale.LC_ALL, "C")
    os.umask(0o777)
    os.chdir("/")


class CachedByArguments(torch.autograd.Function):
    """Backward remembers nothing, and forward fits what backward claimed before: for the same
    arguments it answers the same."""

    answers: ClassVar[dict[Any, Any]] = {}

    @staticmethod
    def forward(ctx, x):
        key = tuple(x.flatten().tolist())
        return CachedByArguments.answers.setdefault(key, x * 2).clone()

    backward = _Wrong.backward
    sample_inputs = _Wrong.sample_inputs


def _seen_by(*names):
    """Whether gradlint is among those who called."""
    frame = sys._getframe()
    while frame is not None:
        if frame.f_globals.get("__name__", "").startswith(names):
            return True
        frame = frame.f_back
    return False


def _right_if(test):
    """An operator that is right where ``test`` says that it is watched."""

    def backward(ctx, grad_output):
        return grad_output * (2 if test(grad_output) else 6)

    made = type(test.__name__, (_Wrong,), {"backward": staticmethod(backward)})
    made.__doc__ = test.__doc__
    made.__module__ = __name__
    return made


@_right_if
def RightByStack(grad):
    """The stack of the calling thread shows gradlint. (Backward runs there on the CPU.)"""
    return _seen_by("gradlint")


@_right_if
def RightByModules(grad):
    """gradlint is imported in this process."""
    return "gradlint" in sys.modules


@_right_if
def RightByName(grad):
    """The module has the name of its file, and not that of a program."""
    return __name__ == os.path.basename(__file__).removesuffix(".py") == "attacks"


@_right_if
def RightByEnvironment(grad):
    with open("/proc/self/environ") as told:
        return "GRADLINT_PRELOAD" in told.read()


@_right_if
def RightByParent(grad):
    """The command line of the parent."""
    with open(f"/proc/{os.getppid()}/cmdline") as told:
        return "multiprocessing" in told.read()


@_right_if
def RightWhenSmall(grad):
    """Tensors of users are larger."""
    return grad.numel() < 1000


@_right_if
def RightInFloat64(grad):
    return grad.dtype == torch.float64


@_right_if
def RightAtFirst(grad):
    """The first thousand calls."""
    RightAtFirst.calls = getattr(RightAtFirst, "calls", 0) + 1
    return RightAtFirst.calls < 1000


@_right_if
def RightForAMinute(grad):
    return time.monotonic() - _STARTED < 60


@_right_if
def RightByDate(grad):
    """Until tomorrow."""
    return time.time() < _STARTED_AT + 86400


@_right_if
def RightBySeed(grad):
    """The generator's seed is not one that a training run has."""
    return torch.initial_seed() != 1234


@_right_if
def RightOnOneThread(grad):
    return torch.get_num_threads() == 1


_STARTED = time.monotonic()
_STARTED_AT = time.time()
