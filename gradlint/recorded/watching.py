"""Notes the calls of operators in a process that ``gradlint record`` watches.

``gradlint.recorded.hook`` executes this file once the program imports torch. It imports nothing of
gradlint, and torch is handed to it. What it watches:

- ``Function.apply``, by a function that apply calls first (so that tracebacks and warnings of the
  program are the same as without it, and ``apply = MyFunction.apply`` is seen wherever it stands);
- operators registered with torch, apart from PyTorch's own;
- modules and functions that ``--of`` names.

The first calls of an operator are kept, then one each time that the number of calls has doubled,
and every call of another kind (shapes, dtypes, options, contexts). A kept call is one file, which
is there whole or not at all, so that a process may end at any moment. Nothing here raises, draws
random numbers, or changes a tensor; what takes time is limited to a share of the program's.

A file holds two lengths, a header in JSON, and the bytes of arrays, as messages of
``gradlint.ops.bare`` do. ``gradlint.recorded.read`` reads them.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import functools
import inspect
import json
import os
import struct
import sys
import time
from _thread import get_ident
from collections.abc import Callable, Iterable, Sequence
from types import FrameType, ModuleType
from typing import Any

#: Calls of an operator that each process keeps whatever that costs: the first ones, and those of
#: another kind than all before (heuristic: tens of milliseconds for each operator).
FIRST, KINDS = 3, 16
#: Calls of an operator that a process keeps, at most, and kinds of calls that it remembers.
MOST_KEPT, MOST_KINDS = 64, 1024
#: Share of the program's time that keeping further calls may take.
SHARE = 0.03
#: Calls in a row of known kinds after which only one of a few is looked at closely, and how many
#: of the others follow it: these are told apart by the shape of their first tensor alone, which is
#: what changes with a batch (heuristic: to look closely takes 3 µs, a small call and its backward
#: 30 µs).
SETTLED, SKIPPED = 256, 31
#: Combinations of integer arguments after which they no longer make another kind of call: a count
#: of steps is another number every time.
MOST_INTEGERS = 32

#: Arguments, also within lists and dicts, of which a call is told apart, and which are kept.
MOST_TOLD, MOST_LEAVES = 32, 64
#: Elements of a tensor that are kept; of a larger one, a block of as many.
MOST_ELEMENTS = 1 << 14
#: Elements up to which the least and the largest one are looked for (about 10 ms).
MOST_READ = 1 << 24
#: Characters of a text among the arguments, digits of an integer, and characters of what is shown
#: of another object.
LONGEST_TEXT, MOST_DIGITS, LONGEST_SHOWN = 1000, 100, 80
#: Lists within lists that are read.
DEEPEST = 8
#: Callers of an operator that are noted: one of them may be the module that registers it.
MOST_CALLERS = 8
#: Frames that are looked through for the function by which a class without a name is called.
MOST_FRAMES = 50

#: Namespaces of operators that are PyTorch's own and not yet registered when torch is imported.
_OWN_SPACES = {
    *("prims", "rngprims", "debugprims", "inductor", "inductor_prims", "_inductor_test", "fsdp"),
    *("flex_lib", "onnx", "onnx_symbolic", "quantized_decomposed", "streams", "symm_mem", "export"),
    *("c10d_functional", "_c10d_functional", "_c10d_functional_autograd", "_dtensor", "c10d"),
    *("debug_mode_ops", "profiler", "_native", "higher_order", "aten", "prim"),
}

#: Dtypes of tensors whose elements are kept.
_KEPT = {
    *("float64", "float32", "float16", "bfloat16", "complex128", "complex64"),
    *("int64", "int32", "int16", "int8", "uint8", "bool"),
}


class Seen:
    """What is known of one operator in this process."""

    __slots__ = (
        *("calls", "due", "integers", "kept", "kinds", "known", "lost", "op"),
        *("plain", "shape", "skip", "whole"),
    )

    def __init__(self, op: dict[str, Any]) -> None:
        self.op = op
        self.calls = self.kept = 0
        self.due = 1
        self.kinds: set[Any] = set()
        self.integers: set[Any] = set()
        self.whole = True  # whether integers tell calls apart
        self.lost: dict[str, int] = {}
        self.known = 0  # calls in a row that were of a known kind
        self.skip = 0  # calls that are only told apart by the shape of the first tensor
        self.shape: Any = None
        self.plain: Any = None  # torch.Tensor

    def passes(self, args: Sequence[Any]) -> bool:
        """Whether a call need not be looked at closely; it is counted then."""
        if self.skip and args:
            first = args[0]
            if type(first) is self.plain and first.shape == self.shape:
                self.skip -= 1
                self.calls += 1
                return True
        return False


class Recorder:
    """Notes calls in files of a folder."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.ops: dict[Any, Seen | None] = {}
        self.torch: Any = None
        self.restart()

    def restart(self) -> None:
        """A process begins, this one or the child of a fork."""
        self.pid = os.getpid()
        self.token = f"{self.pid}-{time.time_ns()}"
        self.files = 0
        self.started = time.perf_counter()
        self.spent = 0.0
        self.busy: set[int] = set()
        for seen in self.ops.values():
            if seen is not None:
                seen.calls = seen.kept = 0
                seen.due = FIRST + 1  # what the parent kept is not kept again
                seen.lost = {}

    # -- What is called on every call ----------------------------------------------------------

    def function(
        self, cls: type, args: Sequence[Any], kwargs: dict[str, Any], frame: FrameType | None
    ) -> None:
        """``cls.apply`` was called, below ``frame``."""
        key = (cls.__module__, cls.__qualname__)
        try:
            seen = self.ops[key]
        except KeyError:
            own = _of_torch(key[0])
            seen = self.ops[key] = None if own else Seen(self.named("function", cls))
        if seen is not None:
            self.call(seen, args, kwargs)
            if not seen.op["attribute"]:
                self.entrance(seen, cls, frame)

    def entrance(self, seen: Seen, cls: type, frame: FrameType | None) -> None:
        """Note the call of the function of its module through which a class is called that has no
        name there: the outermost one that takes a tensor."""
        module = sys.modules.get(cls.__module__)
        found = None
        for _ in range(MOST_FRAMES):
            if frame is None or module is None:
                break
            if frame.f_globals is vars(module):
                thing: Any = vars(module).get(frame.f_code.co_name)
                inner: Any = thing
                while hasattr(inner, "__wrapped__"):
                    inner = inner.__wrapped__
                if getattr(inner, "__code__", None) is frame.f_code:
                    args, kwargs = _given(frame)
                    tensor = self.torch.Tensor
                    if any(isinstance(value, tensor) for value in (*args, *kwargs.values())):
                        found = thing, args, kwargs
            frame = frame.f_back
        if found is None:
            return
        thing, args, kwargs = found
        key = ("entrance", cls.__module__, thing.__name__)
        way = self.ops.get(key)
        if way is None:
            way = self.ops[key] = Seen(self.named("callable", thing))
        seen.op["through"] = f"{cls.__module__}:{way.op['attribute']}"
        self.call(way, args, kwargs)

    def call(self, seen: Seen, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        """An operator was called."""
        here = get_ident()
        if self.busy and here in self.busy:
            return  # what is done below is no call of the program's
        if seen.passes(args):
            return
        seen.calls += 1
        self.busy.add(here)
        try:
            kind = self.kind(seen, args, kwargs)
            new = kind not in seen.kinds
            if new and len(seen.kinds) < MOST_KINDS:
                seen.kinds.add(kind)
            seen.known = 0 if new else seen.known + 1
            if seen.known >= SETTLED and args:
                seen.skip = min(SKIPPED, max(0, seen.due - seen.calls - 1))
                seen.shape = getattr(args[0], "shape", None)
                seen.plain = self.torch.Tensor
            if new or seen.calls >= seen.due:
                self.decide(seen, args, kwargs, new)
        except Exception as error:
            self.lose(seen, f"noting a call raised {type(error).__name__}")
        finally:
            self.busy.discard(here)

    def kind(self, seen: Seen, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """By what calls are told apart."""
        torch = self.torch
        parts: list[Any] = [
            torch.is_grad_enabled(),
            torch.is_inference_mode_enabled(),
            torch.is_autocast_enabled(),
            len(args),
        ]
        whole = seen.whole
        integers: list[int] = []
        self.tell(args[:MOST_TOLD], parts, integers, MOST_TOLD)
        if kwargs:
            parts.append(tuple(kwargs))
            self.tell(list(kwargs.values())[:MOST_TOLD], parts, integers, MOST_TOLD)
        if whole and integers:
            numbers = tuple(integers)
            if numbers not in seen.integers:
                seen.integers.add(numbers)
                seen.whole = whole = len(seen.integers) <= MOST_INTEGERS
        return (tuple(parts), tuple(integers)) if whole else tuple(parts)

    def tell(self, values: Iterable[Any], parts: list[Any], integers: list[int], left: int) -> None:
        """Add what ``values`` are told apart by: to ``parts``, and integers to a list of theirs."""
        Tensor = self.torch.Tensor
        for value in values:
            kind = type(value)
            if isinstance(value, Tensor):
                parts.append((value.shape, value.dtype, value.requires_grad, kind.__name__))
            elif kind is int:
                parts.append(int)
                integers.append(value if -(2**63) <= value < 2**63 else 0)
            elif kind is bool or value is None or (kind is str and len(value) <= LONGEST_TEXT):
                parts.append(value)
            elif kind in (list, tuple, dict) and left > 0:
                parts.append((kind, len(value)))
                inner = value.values() if kind is dict else value
                some = [item for item, _ in zip(inner, range(min(left, 8)), strict=False)]
                self.tell(some, parts, integers, left - len(some) - 1)
            else:
                parts.append(kind)

    # -- Calls that are kept -------------------------------------------------------------------

    def decide(self, seen: Seen, args: Sequence[Any], kwargs: dict[str, Any], new: bool) -> None:
        """Keep a call, if it is one of the first or there is time."""
        free = seen.kept < (KINDS if new else FIRST)
        now = time.perf_counter()
        affordable = self.spent <= SHARE * (now - self.started)
        if seen.calls >= seen.due:
            seen.due = seen.calls + 1 if seen.calls < FIRST else 2 * seen.calls
        if not free and not (affordable and seen.kept < MOST_KEPT):
            if new:
                self.lose(seen, "further kinds of calls were not kept, to save time and space")
            return
        seen.kept += 1
        context = self.context()
        try:
            with self.quiet():
                self.keep(seen, args, kwargs, context)
        finally:
            self.spent += time.perf_counter() - now

    def quiet(self) -> contextlib.ExitStack:
        """The body is seen by no mode of the program's, and leaves no trace in a graph."""
        stack = contextlib.ExitStack()
        stack.enter_context(self.torch.no_grad())
        for name in ("DisableTorchFunction", "_DisableTorchDispatch"):
            if hasattr(self.torch._C, name):
                stack.enter_context(getattr(self.torch._C, name)())
        return stack

    def keep(
        self,
        seen: Seen,
        args: Sequence[Any],
        kwargs: dict[str, Any],
        context: dict[str, Any],
    ) -> None:
        """Write one call."""
        writer = _Writer(self.torch)
        header = {
            "op": seen.op,
            "call": seen.calls,
            "process": self.token,
            "args": [writer.value(value) for value in args[:MOST_LEAVES]],
            "kwargs": {str(key): writer.value(value) for key, value in kwargs.items()},
            "more": max(0, len(args) - MOST_LEAVES),
            "context": context,
            "tensors": writer.tensors,
            "lost": seen.lost,
        }
        self.write("call", header, writer.arrays, writer.bodies)

    def context(self) -> dict[str, Any]:
        """In which context a call is made."""
        torch = self.torch
        found = {"grad": torch.is_grad_enabled(), "inference": torch.is_inference_mode_enabled()}
        for device in ("cpu", "cuda"):
            with contextlib.suppress(Exception):
                if torch.is_autocast_enabled(device):
                    dtype = str(torch.get_autocast_dtype(device)).removeprefix("torch.")
                    found["autocast"] = f"{dtype} on {device}"
        if torch._C._are_functorch_transforms_active():
            found["transform"] = True
        return found

    def write(
        self,
        kind: str,
        header: dict[str, Any],
        arrays: Sequence[Any] = (),
        bodies: Sequence[bytes] = (),
    ) -> None:
        """One file, which is there whole or not at all."""
        header = {**header, "arrays": list(arrays)}
        text = json.dumps(header).encode()
        body = b"".join(bodies)
        if self.pid != os.getpid():
            self.restart()  # a fork that Python was not told of
        self.files += 1
        path = os.path.join(self.folder, f"{self.token}-{self.files:06d}.{kind}")
        fd = os.open(path + ".part", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            view = memoryview(struct.pack(">IQ", len(text), len(body)) + text + body)
            while view:
                view = view[os.write(fd, view) :]
        finally:
            os.close(fd)
        os.rename(path + ".part", path)

    def lose(self, seen: Seen, reason: str) -> None:
        """Note what is not kept."""
        if reason in seen.lost or len(seen.lost) < 16:
            seen.lost[reason] = seen.lost.get(reason, 0) + 1

    def finish(self) -> None:
        """The process ends in order: its last counts."""
        with contextlib.suppress(Exception):
            known = [seen for seen in self.ops.values() if seen is not None and seen.calls]
            rows = [{"op": s.op, "calls": s.calls, "lost": s.lost} for s in known]
            self.write("end", {"process": self.token, "ops": rows})

    # -- Names of operators --------------------------------------------------------------------

    def named(self, kind: str, thing: Any) -> dict[str, Any]:
        """How an operator can be found again."""
        module = getattr(thing, "__module__", None) or ""
        qualname = getattr(thing, "__qualname__", None) or ""
        loaded = sys.modules.get(module)
        file = getattr(loaded, "__file__", None)
        attribute = qualname if _at(loaded, qualname) is thing else ""
        if not attribute and loaded is not None:
            known = (key for key, value in list(vars(loaded).items()) if value is thing)
            attribute = next(known, "")
        if module == "__main__":
            spec = getattr(loaded, "__spec__", None)
            module = getattr(spec, "name", None) or "__main__"
        return {
            "kind": kind,
            "module": module,
            "name": qualname,
            "attribute": attribute,
            "file": os.path.abspath(file) if isinstance(file, str) else "",
        }

    def registered(self, path: str, frame: FrameType | None) -> dict[str, Any]:
        """As :meth:`named`, for an operator that is registered with torch."""
        callers: list[str] = []
        custom = sys.modules.get("torch._library.custom_ops")
        defined = getattr(custom, "OPDEFS", {}).get("::".join(path.split(".")[2:4]))
        if defined is not None:
            callers.append(defined._init_fn.__module__)
        while frame is not None and len(callers) < MOST_CALLERS:
            name = frame.f_globals.get("__name__", "")
            if not _of_torch(name) and name not in callers:
                callers.append(name)
            frame = frame.f_back
        files = [getattr(sys.modules.get(name), "__file__", None) for name in callers]
        return {
            "kind": "library",
            "module": "",
            "name": path,
            "attribute": path,
            "file": "",
            "callers": [
                [name, os.path.abspath(file) if isinstance(file, str) else ""]
                for name, file in zip(callers, files, strict=True)
            ],
            "libraries": sorted(map(str, self.torch.ops.loaded_libraries))[:16],
        }

    # -- What is put into torch ----------------------------------------------------------------

    def on_function_module(self, module: Any) -> None:
        """``torch.autograd.function`` was imported."""
        self.torch = sys.modules["torch"]
        self.write("start", {"process": self.token})
        atexit.register(self.finish)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self.restart)
        inner = module.Function.apply.__func__
        code = inner.__code__
        name = "_is_setup_context_defined"
        asked = getattr(module, name, None)
        known = {"cls", "args", "kwargs"} <= set(code.co_varnames)
        if asked is None or name not in code.co_names or not known:
            self.wrap_apply(module, inner)
            return

        ops, getframe = self.ops, sys._getframe

        def _is_setup_context_defined(fn: Any) -> Any:
            frame = getframe(1)
            if frame.f_code is code:
                try:
                    given = frame.f_locals
                    cls, args = given["cls"], given["args"]
                    seen = ops.get((cls.__module__, cls.__qualname__))
                    if seen is None or not seen.passes(args):
                        self.function(cls, args, given["kwargs"], frame.f_back)
                except Exception:
                    pass
            return asked(fn)

        setattr(module, name, _is_setup_context_defined)

    def wrap_apply(self, module: Any, inner: Callable[..., Any]) -> None:
        """For versions of torch whose ``apply`` can't be seen from within."""

        @functools.wraps(inner)
        def apply(cls: type, *args: Any, **kwargs: Any) -> Any:
            self.guarded(self.function, cls, args, kwargs, sys._getframe(1))
            return inner(cls, *args, **kwargs)

        module.Function.apply = classmethod(apply)

    def on_ops_module(self, module: Any) -> None:
        """``torch._ops`` was imported, and PyTorch's own operators are registered."""
        self.torch = sys.modules["torch"]
        registered = sys.modules["torch._C"]._dispatch_get_all_op_names()
        own = _OWN_SPACES | {name.partition("::")[0] for name in registered}
        packet_class, overload_class = module.OpOverloadPacket, module.OpOverload
        refreshed = getattr(module, "_refresh_packet", None)

        def see_packet(packet: Any) -> None:
            space, _, name = packet._qualified_op_name.partition("::")
            if space not in own:
                self.watch(packet, f"torch.ops.{space}.{name}")
                table = sys.modules.get("torch.jit._builtins")
                if table is not None:
                    table._register_builtin(packet._op, packet._qualified_op_name)

        def see_overload(overload: Any) -> None:
            space, _, name = overload._schema.name.partition("::")
            if space not in own:
                extra = overload._schema.overload_name
                self.watch(overload, f"torch.ops.{space}.{name}{extra and '.'}{extra}")

        def seeing(method: Callable[..., Any], see: Callable[[Any], None]) -> Callable[..., None]:
            @functools.wraps(method)
            def called(thing: Any, *args: Any, **kwargs: Any) -> None:
                method(thing, *args, **kwargs)
                self.guarded(see, thing)

            return called

        packet_class.__init__ = seeing(packet_class.__init__, see_packet)
        overload_class.__init__ = seeing(overload_class.__init__, see_overload)
        if refreshed is not None:
            module._refresh_packet = seeing(refreshed, see_packet)

    def watch(self, thing: Any, path: str) -> None:
        """Note the calls of an operator that is registered with torch."""
        inner = thing._op
        key = ("torch.ops", path)

        def note(frame: FrameType, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
            seen = self.ops.get(key)
            if seen is None:
                seen = self.ops[key] = Seen(self.registered(path, frame))
            if not seen.passes(args):
                self.call(seen, args, kwargs)

        thing._op = _observed(inner, note)

    def on_named(self, module: ModuleType, attributes: Iterable[str]) -> None:
        """A module was imported in which ``--of`` names something."""
        for attribute in attributes:
            owner, _, name = attribute.rpartition(".")
            place = _at(module, owner) if owner else module
            thing = vars(place).get(name)
            if isinstance(thing, type):
                self.on_class(thing)
            elif callable(thing) and not hasattr(thing, _WATCHED):
                seen = Seen(self.named("callable", thing))
                seen.op["attribute"] = attribute
                setattr(place, name, self.watched(seen, thing, 0))

    def on_nn_module(self, module: Any, paths: dict[str, list[str]]) -> None:
        """``torch.nn.Module`` was imported, and ``--of`` names classes in files: one of them may be
        the program itself, which no import leads to."""

        def __init_subclass__(cls: type, **kwargs: Any) -> None:
            super(module.Module, cls).__init_subclass__(**kwargs)  # type: ignore[misc]
            main = sys.modules["__main__"]
            file = os.path.realpath(getattr(main, "__file__", None) or "")
            if cls.__module__ == "__main__" and cls.__qualname__ in paths.get(file, ()):
                self.guarded(self.on_class, cls)

        module.Module.__init_subclass__ = classmethod(__init_subclass__)

    def on_class(self, cls: Any) -> None:
        """A class that ``--of`` names."""
        if not issubclass(cls, sys.modules["torch.nn"].Module):
            return
        seen = Seen(self.named("module", cls))
        seen.op["attribute"] = cls.__qualname__
        cls.forward = self.watched(seen, cls.forward, 1)

    def watched(self, seen: Seen, inner: Any, first: int) -> Any:
        """``inner``, whose calls are noted, without their ``first`` arguments."""

        def note(frame: FrameType, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
            self.torch = self.torch or sys.modules["torch"]
            self.ops[seen.op["kind"], seen.op["name"], seen.op["file"]] = seen
            self.call(seen, args[first:], kwargs)

        return functools.update_wrapper(_observed(inner, note), inner)

    def guarded(self, do: Callable[..., None], *args: Any) -> None:
        """What must not disturb the program, whatever happens."""
        try:
            do(*args)
        except Exception:
            pass


def _given(frame: FrameType) -> tuple[list[Any], dict[str, Any]]:
    """The arguments that a function was given, unless it has put others in their place."""
    code, known = frame.f_code, frame.f_locals
    count, named = code.co_argcount, code.co_kwonlyargcount
    names = code.co_varnames
    args = [known.get(name) for name in names[:count]]
    kwargs = {name: known.get(name) for name in names[count : count + named]}
    rest = iter(names[count + named :])
    if code.co_flags & inspect.CO_VARARGS:
        args += known.get(next(rest), ())
    if code.co_flags & inspect.CO_VARKEYWORDS:
        kwargs.update(known.get(next(rest), {}))
    return args, kwargs


#: Marks what is watched.
_WATCHED = "_gradlint_watched"


def _observed(inner: Any, note: Callable[..., None]) -> Any:
    """A function that calls ``inner``, after ``note`` with the frame of the caller and the
    arguments. It leaves no trace in tracebacks (from Python 3.11 on)."""

    def called(*args: Any, **kwargs: Any) -> Any:
        try:
            note(sys._getframe(1), args, kwargs)
        except Exception:
            pass
        try:
            return inner(*args, **kwargs)
        except BaseException as error:
            trace = error.__traceback__
            error.__traceback__ = trace and trace.tb_next
            raise

    for name in ("__module__", "__name__", "__qualname__", "__doc__"):
        if hasattr(inner, name):
            setattr(called, name, getattr(inner, name))
    setattr(called, _WATCHED, True)
    return called


class _Writer:
    """Arguments as plain data, and arrays."""

    def __init__(self, torch: Any) -> None:
        self.torch = torch
        self.tensors: list[dict[str, Any]] = []
        self.arrays: list[Any] = []
        self.bodies: list[bytes] = []
        self.known: dict[int, int] = {}
        self.leaves = 0

    def value(self, value: Any, depth: int = 0) -> list[Any]:
        """A value as JSON holds it: its kind, and what it is."""
        torch = self.torch
        self.leaves += 1
        kind = type(value)
        if isinstance(value, torch.Tensor):
            return ["tensor", self.tensor(value)]
        if kind.__module__ == "numpy" and getattr(value, "shape", None) == ():
            value = value.item()
            kind = type(value)
        if kind is torch.dtype:
            return ["dtype", str(value).removeprefix("torch.")]
        if kind is torch.device:
            return ["device", str(value)]
        if isinstance(value, (list, tuple, dict)) and depth < DEEPEST:
            return self.group(value, depth)
        return _plain(value) or ["object", _shown(value)]

    def group(self, value: Any, depth: int) -> list[Any]:
        """A list, a tuple or a dict; of one with too many entries the first ones."""
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return ["object", _shown(value)]
        if isinstance(value, dict):
            entries = []
            for key, item in value.items():
                if self.leaves >= MOST_LEAVES:
                    break
                name = key if isinstance(key, (str, int)) else str(key)
                entries.append([name, self.value(item, depth + 1)])
            return ["dict", entries, len(value) - len(entries)]
        kept = []
        for item in value:
            if self.leaves >= MOST_LEAVES:
                break
            kept.append(self.value(item, depth + 1))
        return ["list" if isinstance(value, list) else "tuple", kept, len(value) - len(kept)]

    def tensor(self, tensor: Any) -> int:
        """The position of a tensor in the list of tensors."""
        if id(tensor) in self.known:
            return self.known[id(tensor)]
        torch = self.torch
        position = self.known[id(tensor)] = len(self.tensors)
        strided = tensor.layout is torch.strided
        plain = type(tensor) in (torch.Tensor, torch.nn.Parameter)
        entry = {
            "shape": [int(size) for size in tensor.shape],
            "stride": list(tensor.stride()) if strided else None,
            "dtype": str(tensor.dtype).removeprefix("torch."),
            "device": tensor.device.type,
            "layout": str(tensor.layout).removeprefix("torch."),
            "requires_grad": tensor.requires_grad,
            "type": type(tensor).__name__,
        }
        self.tensors.append(entry)
        if plain and not self.hidden(tensor) and (strided or tensor.numel() <= MOST_ELEMENTS):
            self.values(entry, tensor.detach())
        return position

    def hidden(self, tensor: Any) -> bool:
        """Whether a tensor has no values of its own, or they can't be read now."""
        torch = self.torch
        if tensor.is_meta or tensor.is_nested:
            return True
        if torch._C._functorch.is_functorch_wrapped_tensor(tensor):
            return True
        return bool(tensor.is_cuda and torch.cuda.is_current_stream_capturing())

    def values(self, entry: dict[str, Any], tensor: Any) -> None:
        """The elements of a tensor, or a block of them and between what they all lie."""
        torch = self.torch
        if tensor.layout is not torch.strided:
            tensor = tensor.to_dense()
        shape = list(tensor.shape)
        block: list[int] = []
        rest = 1
        for size in reversed(shape):  # the last axes are kept whole as far as they fit
            block.insert(0, min(size, max(1, MOST_ELEMENTS // max(rest, 1))))
            rest *= block[0]
        part = tensor
        for axis, size in enumerate(block):
            part = part.narrow(axis, 0, size)
        part = part.resolve_conj().resolve_neg().cpu().contiguous()
        if block != shape:
            entry["block"] = block
            ordered = not tensor.is_complex() and tensor.dtype is not torch.bool
            if ordered and tensor.numel() <= MOST_READ:
                entry["range"] = [float(end) for end in torch.aminmax(tensor)]
        if entry["dtype"] in _KEPT:
            count = part.numel() * part.element_size()
            entry["array"] = len(self.arrays)
            self.arrays.append([entry["dtype"], block])
            self.bodies.append(ctypes.string_at(part.data_ptr(), count) if count else b"")


def _plain(value: Any) -> list[Any] | None:
    """A number or a text that JSON can hold."""
    if value is None or isinstance(value, bool):
        return ["plain", value]
    if isinstance(value, int):
        return ["plain", int(value)] if abs(value) < 10**MOST_DIGITS else None
    if isinstance(value, float):
        return ["float", float.hex(value)]
    if isinstance(value, complex):
        return ["complex", [value.real.hex(), value.imag.hex()]]
    if isinstance(value, str) and len(value) <= LONGEST_TEXT:
        return ["plain", str(value)]
    return None


def _shown(value: Any) -> str:
    """The type of an object that can't be kept; of a function or a class its name too."""
    kind = type(value)
    name = getattr(value, "__qualname__", None)
    if isinstance(name, str):
        return f"{kind.__name__} {getattr(value, '__module__', '')}.{name}"[:LONGEST_SHOWN]
    return f"{kind.__module__}.{kind.__qualname__}".replace("builtins.", "")[:LONGEST_SHOWN]


def _at(module: Any, path: str) -> Any:
    """What ``path`` leads to in a module; None if nothing."""
    found = module
    for name in path.split("."):
        found = getattr(found, "__dict__", {}).get(name)
    return found


def _of_torch(name: str) -> bool:
    """Whether a module is one of PyTorch's own."""
    return name == "torch" or name.startswith("torch.")
