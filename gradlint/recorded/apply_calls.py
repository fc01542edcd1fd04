"""How the calls of ``Function.apply`` are seen, at next to no cost.

The first thing that apply does is to ask whether its class has a ``setup_context`` of its own:
``_is_setup_context_defined(cls.setup_context)``. That function is replaced by one that answers the
same and counts, and the attribute that all classes without one inherit by one that tells whose it
is. So nothing stands between the program and its operator, nor in its tracebacks, and what is known
of a class is found by one look-up in a dict; the arguments are read out of apply's frame when a
call is looked at.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from types import CodeType, FrameType
from typing import Any

from gradlint.recorded.looks import Seen

Look = Callable[[type, Sequence[Any], "dict[str, Any]", "FrameType | None"], "Seen | None"]

#: Names that have to stand in the code of ``apply`` and the module that defines it.
_QUESTION, _BASE = "_is_setup_context_defined", "_SingleLevelFunction"
#: The function that is replaced, as torch defines it.
_KNOWN = f"def {_QUESTION}(fn):\n    return fn != {_BASE}.setup_context\n"
#: Classes that are known by themselves, at most; others take 1 µs more.
MOST_CLASSES = 256
#: What is known of a class that is not watched: its calls pass; and of classes with one method.
_UNWATCHED, _SHARED = Seen(), Seen()
_UNWATCHED.skip = 1 << 62


def can_be_seen(module: Any) -> bool:
    """Whether this version of torch asks as the others do."""
    code = module.Function.apply.__func__.__code__
    names = {"cls", "args", "kwargs"} <= set(code.co_varnames)
    return names and _QUESTION in code.co_names and hasattr(module, _QUESTION)


def see_apply(module: Any, look: Look) -> None:
    """Let ``look`` see the calls of ``Function.apply``.

    Args:
        module: ``torch.autograd.function``.
        look: is given a class, its arguments, and the frame of who calls it; returns what is known
            of the class, None if it is not watched.
    """
    code = module.Function.apply.__func__.__code__
    asked = getattr(module, _QUESTION)
    base = getattr(module, _BASE, None)
    inherited = vars(base).get("setup_context") if base is not None else None
    known: dict[Any, Seen] = {}
    if isinstance(inherited, staticmethod) and _does_what_is_known(asked.__code__):
        answer = _quick(base, inherited.__func__, known, code, look)
    else:
        answer = _slow(asked, known, code, look)
    setattr(module, _QUESTION, answer)


def _quick(
    base: Any, default: Any, known: dict[Any, Seen], code: CodeType, look: Look
) -> Callable[[Any], bool]:
    """The question's answer, and an attribute that tells of which class it is asked."""
    last: Any = None
    getframe = sys._getframe

    class Inherited(staticmethod):  # type: ignore[type-arg]
        """``setup_context`` of the classes that have none of their own."""

        def __get__(self, thing: Any, cls: Any = None) -> Any:
            nonlocal last
            last = cls
            return default

    def _is_setup_context_defined(fn: Any) -> bool:
        own = fn is not default
        try:
            seen = known[fn if own else last]
            left = seen.skip
            if left > 0:
                seen.skip = left - 1
                return own
        except Exception:
            pass
        frame = getframe(1)
        if frame.f_code is code:
            _look(frame, fn if own else None, known, look)
        return own

    base.setup_context = Inherited(default)
    return _is_setup_context_defined


def _slow(
    asked: Callable[[Any], Any], known: dict[Any, Seen], code: CodeType, look: Look
) -> Callable[[Any], Any]:
    """As :func:`_quick`, where it is not known what ``asked`` does."""
    getframe = sys._getframe

    def _is_setup_context_defined(fn: Any) -> Any:
        frame = getframe(1)
        if frame.f_code is code:
            try:
                cls = frame.f_locals["cls"]
                seen = known.get(cls)
                if seen is None or seen.skip <= 0:
                    _look(frame, None, known, look)
                else:
                    seen.skip -= 1
            except Exception:
                pass
        return asked(fn)

    return _is_setup_context_defined


def _look(frame: FrameType, method: Any, known: dict[Any, Seen], look: Look) -> None:
    """Look at a call, and remember what is known of its class, by its ``setup_context`` where that
    is its own. Only a class that stands in its module is, which stays alive anyway."""
    try:
        given = frame.f_locals
        cls = given["cls"]
        seen = look(cls, given["args"], given["kwargs"], frame.f_back)
        if len(known) >= MOST_CLASSES or (seen is not None and not seen.op["attribute"]):
            return
        found = _UNWATCHED if seen is None else seen
        if method is None:
            known[cls] = found
        else:  # classes that share a method are told apart each time
            known[method] = found if known.get(method, found) is found else _SHARED
    except Exception:
        pass


def _does_what_is_known(code: CodeType) -> bool:
    found: dict[str, Any] = {"__name__": __name__}
    exec(_KNOWN, found)
    known: CodeType = found[_QUESTION].__code__
    return (code.co_code, code.co_names) == (known.co_code, known.co_names)
