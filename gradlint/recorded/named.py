"""How an operator that a program calls can be found again by gradlint: its names."""

from __future__ import annotations

import inspect
import os
import sys
from types import FrameType
from typing import Any

#: Callers of an operator that are noted: one of them may be the module that registers it.
MOST_CALLERS = 8
#: Namespaces of operators that are PyTorch's own and not yet registered when torch is imported.
OWN_SPACES = {
    *("prims", "rngprims", "debugprims", "inductor", "inductor_prims", "_inductor_test", "fsdp"),
    *("flex_lib", "onnx", "onnx_symbolic", "quantized_decomposed", "streams", "symm_mem", "export"),
    *("c10d_functional", "_c10d_functional", "_c10d_functional_autograd", "_dtensor", "c10d"),
    *("debug_mode_ops", "profiler", "_native", "higher_order", "aten", "prim"),
}
#: Frames that are looked through for the function by which a class without a name is called.
MOST_FRAMES = 50


def named(kind: str, thing: Any) -> dict[str, Any]:
    """How an operator can be found again."""
    module = getattr(thing, "__module__", None) or ""
    qualname = getattr(thing, "__qualname__", None) or ""
    loaded = sys.modules.get(module)
    file = getattr(loaded, "__file__", None)
    attribute = qualname if at(loaded, qualname) is thing else ""
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


def registered(torch: Any, path: str, frame: FrameType | None) -> dict[str, Any]:
    """As :func:`named`, for an operator that is registered with torch."""
    callers: list[str] = []
    custom = sys.modules.get("torch._library.custom_ops")
    defined = getattr(custom, "OPDEFS", {}).get("::".join(path.split(".")[2:4]))
    if defined is not None:
        callers.append(defined._init_fn.__module__)
    while frame is not None and len(callers) < MOST_CALLERS:
        name = frame.f_globals.get("__name__", "")
        if not of_torch(name) and name not in callers:
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
        "libraries": sorted(map(str, torch.ops.loaded_libraries))[:16],
    }


def entrance(
    cls: type, frame: FrameType | None, tensor: type
) -> tuple[Any, list[Any], dict[str, Any]] | None:
    """The function of its module through which a class is called that has no name there: the
    outermost one that was given a tensor. With its arguments; None if there is none.

    Args:
        cls: a class of a function.
        frame: of who calls it.
        tensor: the class of tensors.
    """
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
                if any(isinstance(value, tensor) for value in (*args, *kwargs.values())):
                    found = thing, args, kwargs
        frame = frame.f_back
    return found


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


def at(module: Any, path: str) -> Any:
    """What ``path`` leads to in a module; None if nothing."""
    found = module
    for name in path.split("."):
        found = getattr(found, "__dict__", {}).get(name)
    return found


def of_torch(name: str) -> bool:
    """Whether a module is one of PyTorch's own."""
    return name == "torch" or name.startswith("torch.")
