"""Audits a class with ``__torch_function__``: the functions it handles, signatures and results."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Iterable, Sequence
from contextlib import redirect_stderr, redirect_stdout, suppress
from typing import Any, get_origin

import torch

from gradlint.base.errors import TargetError
from gradlint.model.op import OpRef
from gradlint.model.settings import Settings
from gradlint.overrides._calls import Trial, instance_factories, tried
from gradlint.overrides._signatures import signature_findings
from gradlint.targets.importing import import_target, module_attribute
from gradlint.targets.load import look_up
from gradlint.targets.load_error import attempt
from gradlint.trace.global_state import preserved_state

#: Version of the object that :func:`audit_class` returns.
SCHEMA_VERSION = 1


def audit_class(cls: type, seed: int = 0) -> dict[str, Any]:
    """The audit of ``cls`` as JSON-able values.

    Args:
        seed: of the random instances that functions are called on.

    Returns:
        ``class``, ``overridable`` (how many functions torch lets be overridden), ``handled`` (by
        the class's own handlers), ``passed_on`` (to Tensor's or another default) and ``refused``
        (names each), ``tried`` (how many were called), ``samples`` (on how many random instances)
        and their ``seed``, ``skipped`` (why nothing was called, or ""), and ``findings``: dicts
        with ``function``, ``kind``, ``severity``, ``message``.
    """
    names = overridable()
    handlers = registered(cls, names)
    with warnings.catch_warnings(), redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")
        refused = {func for func in names if refuses(cls, func)}
        handlers = {func: handler for func, handler in handlers.items() if func not in refused}
        passed_on = [func for func in names if func not in handlers and func not in refused]
        makers, why = instance_factories(cls, seed)
        trials = _trials(cls, makers, [*handlers, *passed_on], names) if makers else []
    testing = torch.overrides.get_testing_overrides()
    findings = [
        {"function": names[func], **found}
        for func, handler in handlers.items()
        for found in signature_findings(handler, testing.get(func))
    ]
    for trial in trials:
        if trial.kind:
            findings.append(
                {
                    "function": names[trial.func],
                    "kind": trial.kind,
                    "severity": trial.severity,
                    "message": trial.message,
                }
            )
    return {
        "schema_version": SCHEMA_VERSION,
        "class": f"{cls.__module__}.{cls.__qualname__}",
        "overridable": len(names),
        "handled": sorted(names[func] for func in handlers),
        "passed_on": sorted(names[func] for func in passed_on),
        "refused": sorted(names[func] for func in refused),
        "tried": len(trials),
        "samples": len(makers),
        "seed": seed,
        "skipped": why,
        "findings": findings,
    }


def overridable() -> dict[Callable[..., Any], str]:
    """Every function that torch lets a class override, with its name."""
    found: dict[Callable[..., Any], str] = {}
    for functions in torch.overrides.get_overridable_functions().values():
        for func in functions:
            name = torch.overrides.resolve_name(func)
            if name:
                found.setdefault(func, name)
    return found


def registered(
    cls: type, names: dict[Callable[..., Any], str]
) -> dict[Callable[..., Any], Callable[..., Any]]:
    """Handlers that ``__torch_function__`` can reach in a dict: function → handler."""
    found: dict[Callable[..., Any], Callable[..., Any]] = {}
    for table in _reachable(cls):
        for func, handler in list(table.items()):
            if callable(handler) and _is_key(func, names):
                found.setdefault(func, handler)
    return found


def refuses(cls: Any, func: Callable[..., Any]) -> bool:
    """Whether ``__torch_function__`` of ``cls`` says that it does not handle ``func``."""
    try:
        answer = cls.__torch_function__(func, (cls,), (), {})
    except NotImplementedError:
        return True
    except Exception:
        return False  # it was handled; only the arguments are missing
    return answer is NotImplemented


def _trials(
    cls: type,
    makers: Sequence[Callable[[], Any]],
    functions: Iterable[Callable[..., Any]],
    names: dict[Callable[..., Any], str],
) -> list[Trial]:
    properties = (".__get__", ".__set__", ".__delete__")
    trials = (
        tried(cls, makers, func) for func in functions if not names[func].endswith(properties)
    )
    return [trial for trial in trials if trial is not None]


def _reachable(cls: type) -> Iterable[dict[Any, Any]]:
    """Dicts in the attributes of ``cls``, and in globals and closures of its override."""
    yield from (v for v in (getattr(cls, n, None) for n in dir(cls)) if isinstance(v, dict))
    method: Any = getattr(cls, "__torch_function__", None)
    function = getattr(method, "__func__", method)
    code = getattr(function, "__code__", None)
    if code is None:
        return
    space = function.__globals__
    yield from (space[name] for name in code.co_names if isinstance(space.get(name), dict))
    for cell in function.__closure__ or ():
        with suppress(ValueError):  # an empty cell
            if isinstance(cell.cell_contents, dict):
                yield cell.cell_contents


def _is_key(func: Any, names: dict[Callable[..., Any], str]) -> bool:
    try:
        return func in names
    except TypeError:
        return False


def audit(ref: OpRef, settings: Settings) -> dict[str, Any]:
    """What :func:`gradlint.overrides.audit.audit_class` finds in the class that ``ref`` names.

    Runs the user's code: only in a worker.

    Raises:
        TargetError: it is not a class, or does not define ``__torch_function__``.
        LoadError: the user's code raised.
    """
    module = import_target(ref, settings)
    file = module_attribute(module, "__file__") or ""
    found = attempt(f"looking up `{ref.attribute}`", lambda: look_up(module, ref), file)
    # An alias like dict[str, int] passes for a class in Python 3.10.
    if not isinstance(found, type) or get_origin(found) is not None:
        raise TargetError(f"`{ref.target}` is not a class", hint="Name a class.")
    own = getattr(found, "__torch_function__", None)
    if own is None or getattr(own, "__func__", own) is getattr(
        torch.Tensor.__torch_function__, "__func__", None
    ):
        raise TargetError(
            f"`{ref.target}` defines no `__torch_function__`",
            hint="Only classes that override torch's functions can be audited.",
        )
    with preserved_state():
        return {"target": ref.target, **audit_class(found, settings.seed)}
