"""A module as its syntax tree shows it: imports, classes, functions, names; nothing is executed."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from dataclasses import dataclass, field

from gradlint.targets.locate import dotted_of_file, split_module
from gradlint.targets.source_file import MOST_KEPT, SourceFile, bindings, dotted, read_source

#: How many files a chain of base classes or re-exports is followed through.
MAX_HOPS = 12

#: Names whose use means that a module may hold more attributes than its text shows.
_DYNAMIC_NAMES = {"globals", "vars", "setattr", "exec", "eval", "locals"}

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef

_cache: dict[str, StaticModule] = {}


@dataclass(eq=False)
class StaticModule:
    """What the source of one module binds.

    Args:
        source: the file.
        package: dotted name of the package that relative imports start from.
        imports: alias → absolute dotted name it stands for.
        stars: modules imported with ``*``.
        classes: classes by qualified name; those inside functions are left out.
        functions: functions at module level.
        assigned: name → value of its last plain assignment at module level.
        names: every name bound at module level.
        dynamic: whether the module may bind names that its text doesn't show.
    """

    source: SourceFile
    package: str = ""
    imports: dict[str, str] = field(default_factory=dict)
    stars: list[str] = field(default_factory=list)
    classes: dict[str, ast.ClassDef] = field(default_factory=dict)
    functions: dict[str, FunctionNode] = field(default_factory=dict)
    assigned: dict[str, ast.expr] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)
    dynamic: bool = False

    def absolute(self, name: str) -> str:
        """``name`` with the alias at its head replaced by what was imported under it."""
        head, dot, rest = name.partition(".")
        return self.imports.get(head, head) + dot + rest


def static_module(path: str) -> StaticModule | None:
    """The module in the file at ``path``; None where it can't be read or parsed."""
    source = read_source(path)
    if source is None or source.tree is None:
        return None
    known = _cache.get(path)
    if known is not None and known.source is source:
        return known
    _, name = dotted_of_file(path)
    package = name if os.path.basename(path) == "__init__.py" else name.rpartition(".")[0]
    module = StaticModule(source, package)
    _read(module, source.tree)
    _cache[path] = module
    if len(_cache) > MOST_KEPT:
        del _cache[next(iter(_cache))]
    return module


def find_class(
    module: StaticModule, name: str, hops: int = MAX_HOPS
) -> tuple[StaticModule, str, ast.ClassDef] | str:
    """The class that ``name`` means inside ``module``, followed through imports and aliases.

    Returns:
        The module it is defined in, its qualified name there and its node; or, where it can't be
        followed, its absolute dotted name. torch is never followed: its names are known.
    """
    if name in module.classes:
        return module, name, module.classes[name]
    if hops <= 0:
        return name
    head, _, rest = name.partition(".")
    if head in module.assigned and head not in module.imports:
        target = dotted(module.assigned[head])
        if target and target.partition(".")[0] != head:
            return find_class(module, f"{target}.{rest}" if rest else target, hops - 1)
        return name
    if head in module.imports:
        full = module.absolute(name)
        return full if _is_torch(full) else _follow(full, hops - 1) or full
    stars = [] if head in module.names else [s for s in module.stars if not _is_torch(s)]
    found = (_follow(f"{star}.{name}", hops - 1) for star in stars)
    return next((item for item in found if item is not None), name)


def _is_torch(name: str) -> bool:
    return name.partition(".")[0] == "torch"


def lineage(
    module: StaticModule, node: ast.ClassDef
) -> tuple[list[tuple[StaticModule, ast.ClassDef]], list[str]]:
    """``node`` and its base classes as far as source leads, nearest first, and the absolute
    names of the bases at which it ends."""
    known: list[tuple[StaticModule, ast.ClassDef]] = []
    ends: list[str] = []
    waiting = [(module, node)]
    while waiting:
        where, current = waiting.pop(0)
        if any(current is seen for _, seen in known) or len(known) > 64:
            continue
        known.append((where, current))
        for base in _bases(current):
            found = find_class(where, base)
            if isinstance(found, str):
                ends.append(found)
            else:
                waiting.append((found[0], found[2]))
    return known, ends


def members(node: ast.ClassDef) -> dict[str, ast.stmt]:
    """Names bound in the body of a class, each with the statement that binds it."""
    bound: dict[str, ast.stmt] = {}
    for statement in bindings(node.body):
        for name in _bound_names(statement):
            bound[name] = statement
    return bound


def classes_within(
    node: ast.Module | ast.ClassDef, prefix: str = ""
) -> Iterator[tuple[str, ast.ClassDef]]:
    """(qualified name, class) of the classes in a module or class, nested ones after outer ones."""
    for statement in bindings(node.body):
        if isinstance(statement, ast.ClassDef):
            name = prefix + statement.name
            yield name, statement
            yield from classes_within(statement, name + ".")


def _follow(full: str, hops: int) -> tuple[StaticModule, str, ast.ClassDef] | None:
    split = split_module(full)
    if split is None or split[0].file is None or not split[1]:
        return None
    other = static_module(split[0].file)
    if other is None:
        return None
    found = find_class(other, split[1], hops)
    return None if isinstance(found, str) else found


def _bases(node: ast.ClassDef) -> Iterator[str]:
    for base in node.bases:
        if isinstance(base, ast.Call):  # with_metaclass(Meta, Base)
            yield from filter(None, map(dotted, base.args))
        elif isinstance(base, ast.Subscript):
            yield dotted(base.value)
        else:
            yield dotted(base) or "<expression>"


def _read(module: StaticModule, tree: ast.Module) -> None:
    for statement in bindings(tree.body):
        if isinstance(statement, ast.Import):
            for alias in statement.names:
                head = alias.name.partition(".")[0]
                module.imports[alias.asname or head] = alias.name if alias.asname else head
        elif isinstance(statement, ast.ImportFrom):
            _read_import_from(module, statement)
        elif isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
            module.functions[statement.name] = statement
        elif isinstance(statement, ast.Assign):
            for target in statement.targets:
                if isinstance(target, ast.Name):
                    module.assigned[target.id] = statement.value
        elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
            module.assigned[dotted(statement.target)] = statement.value
        module.names.update(_bound_names(statement))
    module.classes = dict(classes_within(tree))
    _read_dynamic(module, tree)


def _read_dynamic(module: StaticModule, tree: ast.Module) -> None:
    """Names declared ``global``, and whether names may be bound in ways that the text hides."""
    module.dynamic = "__getattr__" in module.names
    for node in ast.walk(tree):
        if isinstance(node, ast.Global):
            module.names.update(node.names)
        elif isinstance(node, ast.Name):
            module.dynamic |= node.id in _DYNAMIC_NAMES
        elif isinstance(node, ast.Attribute):
            module.dynamic |= node.attr in ("modules", "__dict__")


def _read_import_from(module: StaticModule, statement: ast.ImportFrom) -> None:
    origin = statement.module or ""
    if statement.level:
        parts = module.package.split(".")
        parts = parts[: len(parts) - statement.level + 1]
        origin = ".".join([*parts, *([origin] if origin else [])])
    for alias in statement.names:
        if alias.name == "*":
            module.stars.append(origin)
        else:
            module.imports[alias.asname or alias.name] = f"{origin}.{alias.name}"


def _bound_names(statement: ast.stmt) -> Iterator[str]:
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        yield statement.name
    elif isinstance(statement, (ast.Import, ast.ImportFrom)):
        for alias in statement.names:
            if alias.name != "*":
                yield alias.asname or alias.name.partition(".")[0]
    elif isinstance(statement, (ast.For, ast.AsyncFor)):
        yield from _stored(statement.target)
    elif isinstance(statement, (ast.With, ast.AsyncWith)):
        for item in statement.items:
            if item.optional_vars is not None:
                yield from _stored(item.optional_vars)
    elif not hasattr(statement, "body"):
        yield from _stored(statement)


def _stored(node: ast.AST) -> Iterator[str]:
    for part in ast.walk(node):
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
            yield part.id
