"""Notes the calls of operators in a process that ``gradlint record`` watches.

``gradlint.recorded.hook`` executes this file once the program imports torch, with the files beside
it that it imports; it imports nothing else of gradlint, and torch is handed to it. What it watches:

- ``Function.apply``, by what apply asks for first (so that tracebacks and warnings of the program
  are the same as without it, and ``apply = MyFunction.apply`` is seen wherever it stands);
- operators registered with torch, apart from PyTorch's own;
- modules and functions that ``--of`` names.

The first calls of an operator are looked at. After that, looking may take a share of the program's
time (:mod:`gradlint.recorded.looks`); a call that is not looked at costs a look-up and a count. Of
the calls that are looked at, the first ones are kept, one each time that the number of calls has
doubled, and every one of another kind (shapes, dtypes, options, contexts). Nothing here raises,
draws random numbers, or changes a tensor.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import sys
import time
from _thread import get_ident
from collections.abc import Callable, Iterable, Sequence
from types import FrameType, ModuleType
from typing import Any

from gradlint.recorded.apply_calls import can_be_seen, see_apply
from gradlint.recorded.constructed import Constructed
from gradlint.recorded.looks import Budget, Seen, kind_of
from gradlint.recorded.named import OWN_SPACES, at, entrance, named, of_torch, registered
from gradlint.recorded.written import MOST_LEAVES, Writer, write_file

#: Calls of an operator that each process keeps whatever that costs: the first ones, and those of
#: another kind than all before (heuristic: tens of milliseconds for each operator).
FIRST, KINDS = 3, 16
#: Calls of an operator that a process keeps, at most.
MOST_KEPT = 64
#: Priority of what is done last where ``multiprocessing`` ends a process: the least is the last.
LAST = -1000
#: Share of the program's time that keeping further calls may take.
SHARE_KEPT = 0.03


class Recorder:
    """Notes calls in files of a folder."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.ops: dict[Any, Seen | None] = {}
        self.torch: Any = None
        self.ending = ""  # the process whose end is waited for
        self.restart()

    def restart(self) -> None:
        """A process begins, this one or the child of a fork."""
        self.pid = os.getpid()
        self.token = f"{self.pid}-{time.time_ns()}"
        self.files = 0
        self.started = time.perf_counter()
        self.spent = 0.0
        self.budget = Budget()
        self.busy: set[int] = set()
        for seen in self.ops.values():
            if seen is not None:
                seen.restart(FIRST + 1)  # what the parent kept is not kept again

    def forked(self) -> None:
        """The child of a fork begins. One that ``multiprocessing`` made, as those that load data,
        leaves without what ``atexit`` was told, and does what it was told itself."""
        self.restart()
        util = sys.modules.get("multiprocessing.util")
        if util is not None:  # it forgets what it was told before, and then asks those
            util.register_after_fork(self, Recorder.await_end)

    def await_end(self) -> None:
        """Have :meth:`finish` called when this child of ``multiprocessing`` ends."""
        if self.ending != self.token:
            self.ending = self.token
            sys.modules["multiprocessing.util"].Finalize(None, self.finish, exitpriority=LAST)

    # -- Calls that are looked at --------------------------------------------------------------

    def function(
        self, cls: type, args: Sequence[Any], kwargs: dict[str, Any], frame: FrameType | None
    ) -> Seen | None:
        """``cls.apply`` was called, below ``frame``; what is known of it, if it is watched."""
        key = (cls.__module__, cls.__qualname__)
        try:
            seen = self.ops[key]
        except KeyError:
            own = of_torch(key[0])
            seen = self.ops[key] = None if own else Seen(named("function", cls))
        if seen is None:
            return None
        if seen.skip > 0:
            seen.skip -= 1
            return seen
        times = seen.passed + 1
        self.call(seen, args, kwargs)
        if not seen.op["attribute"]:
            self.entrance(seen, cls, frame, times)
        return seen

    def entrance(self, seen: Seen, cls: type, frame: FrameType | None, times: int) -> None:
        """Note the call of the function through which a class is called that has no name."""
        found = entrance(cls, frame, self.torch.Tensor)
        if found is None:
            return
        thing, args, kwargs = found
        key = ("entrance", cls.__module__, thing.__name__)
        way = self.ops.get(key)
        if way is None:
            way = self.ops[key] = Seen(named("callable", thing))
        seen.op["through"] = f"{cls.__module__}:{way.op['attribute']}"
        way.calls += times - 1
        self.call(way, args, kwargs)
        way.calls -= way.skip  # each look at the class is one at its function
        way.skip = 0

    def call(
        self, seen: Seen, args: Sequence[Any], kwargs: dict[str, Any], made: Any = None
    ) -> None:
        """Look at a call of an operator, of a module that was ``made`` so."""
        here = get_ident()
        if self.busy and here in self.busy:
            return  # what is done below is no call of the program's
        begun = time.perf_counter()
        self.busy.add(here)
        try:
            seen.calls += 1
            seen.looked += 1
            kind = kind_of(self.torch, seen, args, kwargs)
            new = seen.is_new(kind if made is None else (kind, made))
            if new or seen.calls >= seen.due:
                self.decide(seen, args, kwargs, new, made)
        except Exception as error:
            seen.lose(f"noting a call raised {type(error).__name__}")
        finally:
            self.budget.spend(seen, begun)
            self.busy.discard(here)

    # -- Calls that are kept -------------------------------------------------------------------

    def decide(
        self, seen: Seen, args: Sequence[Any], kwargs: dict[str, Any], new: bool, made: Any
    ) -> None:
        """Keep a call, if it is one of the first or there is time."""
        free = seen.kept < (KINDS if new else FIRST)
        now = time.perf_counter()
        affordable = self.spent <= SHARE_KEPT * (now - self.started)
        if seen.calls >= seen.due:
            seen.due = seen.calls + 1 if seen.calls < FIRST else 2 * seen.calls
        if not free and not (affordable and seen.kept < MOST_KEPT):
            if new:
                seen.lose("further kinds of calls were not kept, to save time and space")
            return
        seen.kept += 1
        context = self.context()
        try:
            with self.quiet():
                self.keep(seen, args, kwargs, context, made)
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
        made: Any,
    ) -> None:
        """Write one call."""
        writer = Writer(self.torch)
        header = {
            "op": seen.op,
            "call": seen.calls,
            "looked": seen.looked,
            "process": self.token,
            "args": [writer.value(value) for value in args[:MOST_LEAVES]],
            "kwargs": {str(key): writer.value(value) for key, value in kwargs.items()},
            "more": max(0, len(args) - MOST_LEAVES),
            "context": context,
            "constructor": made,
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
        """One file of this process."""
        if self.pid != os.getpid():
            self.restart()  # a fork that Python was not told of
        self.files += 1
        path = os.path.join(self.folder, f"{self.token}-{self.files:06d}.{kind}")
        write_file(path, header, arrays, bodies)

    def finish(self) -> None:
        """The process ends in order: its last counts."""
        with contextlib.suppress(Exception):
            known = [seen for seen in self.ops.values() if seen is not None and seen.counted]
            rows = [
                {"op": s.op, "calls": s.counted, "looked": s.looked, "lost": s.lost} for s in known
            ]
            self.write("end", {"process": self.token, "ops": rows})

    # -- What is put into torch ----------------------------------------------------------------

    def on_function_module(self, module: Any) -> None:
        """``torch.autograd.function`` was imported."""
        self.torch = sys.modules["torch"]
        self.write("start", {"process": self.token})
        atexit.register(self.finish)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self.forked)
        if can_be_seen(module):
            see_apply(module, self.function)
        else:
            self.wrap_apply(module, module.Function.apply.__func__)

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
        known = sys.modules["torch._C"]._dispatch_get_all_op_names()
        own = OWN_SPACES | {name.partition("::")[0] for name in known}
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
        key = ("torch.ops", path)
        # One for all objects of that path; its names are found at its first call.
        seen = self.ops.setdefault(key, Seen()) or Seen()

        def note(frame: FrameType, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
            if not seen.op:
                seen.op = registered(self.torch, path, frame)
            self.call(seen, args, kwargs)

        thing._op = _observed(seen, thing._op, note)

    def on_named(self, module: ModuleType, attributes: Iterable[str]) -> None:
        """A module was imported in which ``--of`` names something."""
        for attribute in attributes:
            owner, _, name = attribute.rpartition(".")
            place = at(module, owner) if owner else module
            thing = vars(place).get(name)
            if isinstance(thing, type):
                self.on_class(thing)
            elif callable(thing) and not hasattr(thing, _WATCHED):
                seen = Seen(named("callable", thing))
                seen.op["attribute"] = attribute
                setattr(place, name, self.watched(seen, thing))

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
        seen = Seen(named("module", cls))
        seen.op["attribute"] = cls.__qualname__
        made = Constructed(cls)
        cls.__init__ = functools.update_wrapper(
            _observed(Seen(), made.inner, made.note), made.inner
        )
        cls.forward = self.watched(seen, cls.forward, made)

    def watched(self, seen: Seen, inner: Any, made: Constructed | None = None) -> Any:
        """``inner``, whose calls are noted; a method of a module where it is known how such were
        ``made``."""

        def note(frame: FrameType, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
            self.torch = self.torch or sys.modules["torch"]
            self.ops[seen.op["kind"], seen.op["name"], seen.op["file"]] = seen
            if made is None:
                self.call(seen, args, kwargs)
            else:
                self.call(seen, args[1:], kwargs, made.by(args[0]))

        return functools.update_wrapper(_observed(seen, inner, note), inner)

    def guarded(self, do: Callable[..., Any], *args: Any) -> None:
        """What must not disturb the program, whatever happens."""
        try:
            do(*args)
        except Exception:
            pass


#: Marks what is watched.
_WATCHED = "_gradlint_watched"


def _observed(seen: Seen, inner: Any, note: Callable[..., None]) -> Any:
    """A function that calls ``inner``, after ``note`` with the frame of the caller and the
    arguments where the call is to be looked at. It leaves no trace in tracebacks (from Python 3.11
    on)."""

    def called(*args: Any, **kwargs: Any) -> Any:
        if seen.skip > 0:
            seen.skip -= 1
        else:
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
