"""From the text that a user typed to references to operators, without running the user's code."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence

from gradlint.base.errors import TargetError
from gradlint.model.op import OpRef
from gradlint.model.settings import Settings
from gradlint.targets._missing import (
    FORMS,
    suggest,
    unknown_attribute,
    unknown_file,
    unknown_module,
)
from gradlint.targets._scan import kind_of, may_hold_operators, operators, place_of
from gradlint.targets._scan import left_out as scan_left_out
from gradlint.targets._static import StaticModule, static_module
from gradlint.targets.locate import (
    FoundModule,
    find_module,
    folder_files,
    forget_modules,
    is_spec,
    split_module,
    submodules,
)
from gradlint.targets.source_file import read_source, refuse_unsayable, refuse_unusable, shown_path

#: Attribute of a reference that stands for "every operator in here, once imported".
EVERY = "*"

_SPEC = (".yaml", ".yml")
_FILE_AND_NAME = re.compile(r"^(?P<left>.+\.(?:py|ya?ml)):{1,2}(?P<right>.*)$", re.DOTALL)
_DRIVE = re.compile(r"^[A-Za-z]:[\\/]")


def resolve(target: str, settings: Settings) -> list[OpRef]:
    """The operators that ``target`` names.

    Args:
        target: ``pkg.mod:Name``, ``pkg.mod.Name``, ``path/file.py:Name`` (``::`` too), a module,
            package, file, folder, YAML spec, or ``torch.ops.ns.name``.
        settings: the run's settings.

    Returns:
        One reference an operator, in the order of files and lines. A reference whose attribute
        is ``"*"`` stands for operators that only importing can find: see :func:`expand`. An
        existing path is preferred to a module of the same name. Empty for a folder without any.

    Raises:
        TargetError: nothing of that name exists; the hint offers the nearest names.
    """
    forget_modules()
    target = target.strip()
    if not target:
        raise TargetError("the target is empty", hint=FORMS)
    if "\0" in target:
        raise TargetError(f"{target!r} is not a target", hint=FORMS)
    if target == "torch.ops" or target.startswith("torch.ops."):
        return [_library(target.replace("::", ".").replace(":", "."))]
    if os.path.exists(target):
        return _path(target)
    left, right = _split(target)
    if right is None:
        return _path_or_module(left)
    attribute = right.replace("::", ".").replace(":", ".")
    if attribute == EVERY:
        return resolve(left, settings)
    if not all(part.isidentifier() for part in attribute.split(".")):
        raise TargetError(f"`{right}` in `{target}` is not a valid name", hint=FORMS)
    return [_named(left, attribute, "::" in target)]


def holds_operators(path: str) -> bool:
    """Whether a file is a spec or defines operators, as far as its text shows; whatever is no .py
    or YAML file is taken to be a target."""
    return not path.endswith((".py", *_SPEC)) or bool(_listed_file(path))


def left_out(refs: Sequence[OpRef]) -> dict[str, str]:
    """What the files and modules hold that ``refs`` were listed from, and no reference names: where
    it is → what, and why."""
    found = {}
    for path in dict.fromkeys(ref.path for ref in refs if not ref.explicit):
        ref = next(one for one in refs if one.path == path)
        reasons: dict[str, list[str]] = {}
        for prefix, file in _files_of(ref):
            module = static_module(file)
            for name, reason in scan_left_out(module) if module is not None else ():
                reasons.setdefault(reason, []).append(prefix + name)
        if reasons:
            found[path] = "; ".join(
                f"{', '.join(names)}: {reason}" for reason, names in reasons.items()
            )
    return found


def _files_of(ref: OpRef) -> Iterator[tuple[str, str]]:
    """The files of Python that a listed reference comes from, each with what stands before a name
    in it: several for a package in which no operator was found."""
    if ref.location is not None or ref.source != "module":
        file = ref.location.file if ref.location is not None else ref.path
        if file.endswith(".py"):
            yield "", file
        return
    found = find_module(ref.path)
    for name, file in submodules(found) if found is not None else ():
        if may_hold_operators(file):
            yield "" if name == ref.path else f"{name}:", file


def is_spec_path(path: str) -> bool:
    """Whether ``path`` is named as a YAML spec is."""
    return path.endswith(_SPEC)


def _split(target: str) -> tuple[str, str | None]:
    matched = _FILE_AND_NAME.match(target)
    if matched:
        return matched["left"], matched["right"]
    if _DRIVE.match(target) and target.count(":") == 1:
        return target, None
    if "::" in target:
        left, _, right = target.partition("::")
        return left, right
    left, colon, right = target.rpartition(":")
    return (left, right) if colon else (right, None)


def _path(path: str) -> list[OpRef]:
    if os.path.isdir(path):
        return [ref for file in folder_files(path) for ref in _listed_file(file)]
    if path.endswith(_SPEC):
        return [_spec(path)]
    if path.endswith(".py"):
        refuse_unusable(path)
        refs = _file_operators(path)
        return refs or [_file_ref(path, EVERY)]
    raise TargetError(f"`{path}` is neither a .py file nor a YAML spec", hint=_forms(path))


def _forms(path: str) -> str:
    """What a target may be instead of ``path``."""
    if path.endswith(".ipynb"):
        return (
            "A notebook is not read: put the operator into a .py file that the notebook imports, "
            "and check that."
        )
    return FORMS


def _listed_file(path: str) -> list[OpRef]:
    if path.endswith(_SPEC):
        return [_spec(path)] if is_spec(path) else []
    if not may_hold_operators(path):
        return []
    refuse_unsayable(path)
    source = read_source(path)
    if (
        source is not None and source.tree is None
    ):  # broken, and by its text about operators: said when it is loaded
        return [_file_ref(path, EVERY)]
    return _file_operators(path)


def _file_operators(path: str) -> list[OpRef]:
    module = static_module(path)
    if module is None:
        return []
    shown = shown_path(path)
    return [
        OpRef(f"{shown}:{op.name}", "file", shown, op.name, op.kind, op.location, explicit=False)
        for op in operators(module)
    ]


def _path_or_module(text: str) -> list[OpRef]:
    if _looks_like_path(text):
        raise unknown_file(text)
    split = split_module(text)
    if split is None:
        raise unknown_module(text)
    module, attribute = split
    if attribute:
        if not all(part.isidentifier() for part in attribute.split(".")):
            raise unknown_module(text)
        return [_in_module(module, attribute, text)]
    return _module_operators(module)


def _module_operators(module: FoundModule) -> list[OpRef]:
    refs = []
    for name, file in submodules(module):
        if not may_hold_operators(file):
            continue
        static = static_module(file)
        if static is None:
            refs.append(OpRef(name, "module", name, EVERY, explicit=False))
            continue
        refs += [
            OpRef(f"{name}:{op.name}", "module", name, op.name, op.kind, op.location, False)
            for op in operators(static)
        ]
    return refs or [OpRef(module.name, "module", module.name, EVERY, explicit=False)]


def _named(left: str, attribute: str, doubled: bool) -> OpRef:
    if left.endswith(_SPEC):
        raise TargetError(
            f"`{left}` is a spec, which defines one operator without a name",
            hint=f"Write `{left}` alone.",
        )
    if os.path.isdir(left):
        init = os.path.join(left, "__init__.py")
        if os.path.isfile(init):
            return _in_file(init, attribute)
        raise TargetError(
            f"`{left}` is a folder, in which `{attribute}` can't be looked up",
            hint=suggest(_folder_names(left, attribute)) or "Name the file that defines it.",
        )
    if os.path.exists(left):
        return _in_file(left, attribute)
    if _looks_like_path(left):
        raise unknown_file(left, attribute)
    split = split_module(left)
    if split is None:
        registered = doubled and left.isidentifier() and attribute.isidentifier()
        raise unknown_module(left, attribute, registered=registered)
    module, rest = split
    return _in_module(module, f"{rest}.{attribute}" if rest else attribute, f"{left}:{attribute}")


def _folder_names(folder: str, attribute: str) -> list[str]:
    refs = [ref for file in folder_files(folder) for ref in _listed_file(file)]
    return [ref.target for ref in refs if ref.attribute == attribute]


def _in_file(path: str, attribute: str) -> OpRef:
    if not path.endswith(".py"):
        raise TargetError(f"`{path}` is not a .py file", hint=_forms(path))
    refuse_unusable(path)
    static = static_module(path)
    ref = _file_ref(path, attribute, explicit=True)
    return ref if static is None else _checked(ref, static)


def _in_module(module: FoundModule, attribute: str, text: str) -> OpRef:
    """The reference to ``attribute`` of ``module``; submodules count as attributes."""
    static = None if module.file is None else static_module(module.file)
    head, _, rest = attribute.partition(".")
    if static is None or head not in static.names:
        below = find_module(f"{module.name}.{head}")
        if below is not None:
            if not rest:
                raise TargetError(
                    f"`{text}` is a module, not an operator",
                    hint=f"Write `{below.name}` for every operator in it.",
                )
            return _in_module(below, rest, text)
        if module.file is None and module.folders:
            raise unknown_module(f"{module.name}.{head}", rest)
    ref = OpRef(f"{module.name}:{attribute}", "module", module.name, attribute)
    return ref if static is None else _checked(ref, static)


def _checked(ref: OpRef, static: StaticModule) -> OpRef:
    """``ref`` with kind and place, or an error where the text shows that it does not exist."""
    head = ref.attribute.partition(".")[0]
    if head not in static.names and not static.stars and not static.dynamic:
        raise unknown_attribute(ref, static)
    known = ref.attribute in static.classes or ref.attribute in static.names
    place = place_of(static, ref.attribute) if known else None
    kind = kind_of(static, ref.attribute)
    return OpRef(ref.target, ref.source, ref.path, ref.attribute, kind, place, ref.explicit)


def _file_ref(path: str, attribute: str, explicit: bool = False) -> OpRef:
    shown = shown_path(path)
    target = shown if attribute == EVERY else f"{shown}:{attribute}"
    return OpRef(target, "file", shown, attribute, explicit=explicit)


def _spec(path: str) -> OpRef:
    refuse_unsayable(path)
    shown = shown_path(path)
    return OpRef(shown, "spec", shown)


def _library(target: str) -> OpRef:
    parts = target.split(".")[2:]
    if not 1 <= len(parts) <= 3 or not all(part.isidentifier() for part in parts):
        raise TargetError(
            f"`{target}` is not the name of a registered op",
            hint="Write torch.ops.ns.name, or torch.ops.ns.name.overload.",
        )
    if len(parts) == 1:
        return OpRef(target, "library", target, EVERY, "library", explicit=False)
    return OpRef(target, "library", target, "", "library")


def _looks_like_path(text: str) -> bool:
    separators = {"/", os.sep, *filter(None, [os.altsep])}
    return any(mark in text for mark in separators) or text.endswith((".py", *_SPEC))
