"""Audits of classes that define ``__torch_function__``: what they take over from torch, and how."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_origin

if TYPE_CHECKING:
    from gradlint.config import Settings
    from gradlint.targets import OpRef

__all__ = ["audit"]


def audit(ref: OpRef, settings: Settings) -> dict[str, Any]:
    """What :func:`gradlint.overrides._audit.audit_class` finds in the class that ``ref`` names.

    Runs the user's code: only in a worker.

    Raises:
        TargetError: it is no class, or defines no ``__torch_function__``.
        LoadError: the user's code raised.
    """
    import torch

    from gradlint._errors import TargetError
    from gradlint.overrides._audit import audit_class
    from gradlint.targets._import import held, import_target
    from gradlint.targets._load import look_up
    from gradlint.targets._load_error import attempt
    from gradlint.trace._state import preserved_state

    module = import_target(ref, settings)
    file = held(module, "__file__") or ""
    found = attempt(f"looking up `{ref.attribute}`", lambda: look_up(module, ref), file)
    # An alias like dict[str, int] passes for a class in Python 3.10.
    if not isinstance(found, type) or get_origin(found) is not None:
        raise TargetError(f"`{ref.target}` is no class", hint="Name a class.")
    own = getattr(found, "__torch_function__", None)
    if own is None or getattr(own, "__func__", own) is getattr(
        torch.Tensor.__torch_function__, "__func__", None
    ):
        raise TargetError(
            f"`{ref.target}` defines no `__torch_function__`",
            hint="Only classes that override torch's functions can be audited.",
        )
    with preserved_state():
        return {"target": ref.target, **audit_class(found)}
