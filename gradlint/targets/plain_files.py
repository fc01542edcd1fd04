"""Whether what a file defines can leave nothing behind in the process that runs it.

Several operators of such a file may be checked one after another in one process: the file is
executed anew for each of them. So a file is plain if its text shows that it computes with torch's
functions and keeps to itself: by what it imports, by the names that it uses, and by what it assigns
to. In doubt it is not.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from gradlint.targets.source_file import SourceFile

#: Modules that may be imported, and names from them. What of them changes the process is found by
#: :func:`_reaches_state`.
_MODULES = frozenset(
    (
        *("__future__", "abc", "cmath", "collections", "collections.abc", "dataclasses", "enum"),
        *("functools", "itertools", "math", "numbers", "typing", "torch", "torch.nn"),
        *("torch.nn.functional", "torch.autograd", "torch.autograd.function", "torch.fft"),
        *("torch.linalg", "torch.special"),
    )
)

#: Builtins that may be used. By others code is run, or what lies elsewhere is reached by its name.
_BUILTINS = frozenset(
    (
        *("ArithmeticError", "AssertionError", "Ellipsis", "Exception", "IndexError", "KeyError"),
        *("NotImplemented", "NotImplementedError", "OverflowError", "RuntimeError"),
        *("StopIteration", "TypeError", "ValueError", "ZeroDivisionError", "__name__"),
        *("abs", "all", "any", "bool", "callable", "classmethod", "complex", "dict", "divmod"),
        *("enumerate", "filter", "float", "frozenset", "hasattr", "hash", "int", "isinstance"),
        *("issubclass", "iter", "len", "list", "map", "max", "min", "next", "object", "pow"),
        *("print", "property", "range", "repr", "reversed", "round", "set", "slice", "sorted"),
        *("staticmethod", "str", "sum", "super", "tuple", "zip"),
    )
)

#: Methods with special names that may be defined: they run when somebody uses the object.
#: (``__del__`` runs at any time, and ``__torch_function__`` for others.)
_SPECIAL = frozenset(
    (
        *("__add__", "__call__", "__contains__", "__eq__", "__getitem__", "__hash__", "__init__"),
        *("__iter__", "__len__", "__mul__", "__neg__", "__next__", "__post_init__", "__repr__"),
        *("__str__", "__sub__", "__truediv__"),
    )
)

#: Those of them, and of what functions and classes have, that may be named.
_NAMED = frozenset(("__init__", "__name__"))

#: Parts of torch's dotted names that are state of the process or lead to some, and beginnings of
#: such parts.
_STATE = frozenset(
    (
        *("accelerator", "autocast", "backends", "classes", "compile", "compiler", "config", "cpu"),
        *("cuda", "default_generator", "distributed", "distributions", "export", "func"),
        *("functorch", "fx", "graph", "hooks", "hub", "jit", "library", "load", "manual_seed"),
        *("modules", "monitor", "mps", "mtia", "multiprocessing", "ops", "optim", "overrides"),
        *("package", "parallel", "profiler", "quantization", "random", "save", "seed"),
        *("serialization", "sparse", "storage", "testing", "types", "utils", "version", "vmap"),
        "xpu",
    )
)
_CHANGING = ("_", "detect_", "import_", "init_", "register_", "set_", "unregister_", "use_")

#: Beginnings of attributes by which frames and the globals of functions are reached.
_INNER = ("co_", "cr_", "f_", "func_", "gi_", "tb_")

#: What methods call the object that is theirs, on which they may keep things; and attributes of
#: tensors that may be set wherever the tensor comes from.
_OWN = frozenset(("cls", "context", "ctx", "self"))
_OF_TENSORS = frozenset(("data", "grad", "requires_grad"))

#: Parts of a program that may do what can't be seen from here, or that are rare in operators.
_REFUSED = (ast.AsyncFor, ast.AsyncFunctionDef, ast.AsyncWith, ast.Await, ast.Match)


@dataclass
class _Names:
    """The names of a file: those of ``modules``, what is ``imported`` from them, what the file
    ``defines`` as functions and classes, and all else that it binds."""

    modules: set[str] = field(default_factory=set)
    imported: set[str] = field(default_factory=set)
    defined: set[str] = field(default_factory=set)
    bound: set[str] = field(default_factory=set)

    def of_others(self, name: str) -> bool:
        """Whether ``name`` stands for something that the file does not make."""
        return name in self.modules or name in self.imported


def is_plain(source: SourceFile) -> bool:
    """Whether nothing is left behind where the file's code has run, as far as its text shows."""
    if source.tree is None:
        return False
    nodes = list(ast.walk(source.tree))
    names = _Names()
    for node in nodes:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            if not _note_import(node, names):
                return False
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.defined.add(node.name)
        else:
            names.bound.update(_bound_by(node))
    if (names.defined | names.bound) & (names.modules | names.imported):
        return False  # what such a name stands for depends on the place
    below = {node.value for node in nodes if isinstance(node, ast.Attribute)}
    named = {place for node in nodes for place in _where_classes_may_stand(node)}
    return all(
        _keeps_to_itself(node, names, below)
        and (node in named or not _is_class_of_others(node, names))
        for node in nodes
    )


def _note_import(node: ast.Import | ast.ImportFrom, names: _Names) -> bool:
    """Add the names that an import binds; False if it may bring in state."""
    if isinstance(node, ast.Import):
        names.modules |= {alias.asname or alias.name.partition(".")[0] for alias in node.names}
        return all(alias.name in _MODULES for alias in node.names)
    if node.level or node.module not in _MODULES:
        return False
    for alias in node.names:
        of_module = f"{node.module}.{alias.name}" in _MODULES
        kind = names.modules if of_module else names.imported
        kind.add(alias.asname or alias.name)
    return not any(alias.name == "*" or _reaches_state(alias.name) for alias in node.names)


def _bound_by(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.arg):
        yield node.arg
    elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
        yield node.id
    elif isinstance(node, ast.ExceptHandler) and node.name:
        yield node.name


def _keeps_to_itself(node: ast.AST, names: _Names, below: set[ast.expr]) -> bool:
    """Whether one part of the file changes nothing beyond the file.

    Args:
        below: expressions of which an attribute is taken: modules may stand there only, so that
            none gets another name.
    """
    if isinstance(node, ast.Name):
        if node.id in names.modules:
            return node in below
        return node.id in names.imported | names.defined | names.bound | _BUILTINS
    if isinstance(node, ast.Attribute):
        return _is_harmless(node, names)
    if isinstance(node, ast.Subscript):
        return isinstance(node.ctx, ast.Load) or not names.of_others(_root(node))
    if isinstance(node, ast.FunctionDef):
        return not _is_special(node.name) or node.name in _SPECIAL
    return not (isinstance(node, _REFUSED) or (isinstance(node, ast.ClassDef) and node.keywords))


def _is_harmless(node: ast.Attribute, names: _Names) -> bool:
    name, root = node.attr, _root(node)
    if name.startswith(_INNER) or (_is_special(name) and name not in _NAMED):
        return False
    if names.of_others(root):
        return isinstance(node.ctx, ast.Load) and not _reaches_state(name)
    if isinstance(node.ctx, ast.Load):
        return True
    return root in _OWN or root in names.defined or name in _OF_TENSORS


def _where_classes_may_stand(node: ast.AST) -> Iterator[ast.AST]:
    """Expressions in which a class is used for what it is. One that is kept or handed on could be
    changed there under another name."""
    if isinstance(node, ast.Attribute):
        yield node.value
    elif isinstance(node, ast.Call):
        yield node.func
        if isinstance(node.func, ast.Name) and node.func.id in ("isinstance", "issubclass"):
            yield from (part for given in node.args for part in ast.walk(given))
    elif isinstance(node, ast.ClassDef):
        yield from node.bases
    elif isinstance(node, ast.ExceptHandler) and node.type is not None:
        yield node.type
    for told in (getattr(node, "annotation", None), getattr(node, "returns", None)):
        if isinstance(told, ast.expr):
            yield from ast.walk(told)


def _is_class_of_others(node: ast.AST, names: _Names) -> bool:
    """Whether ``node`` names what looks like a class that the file does not define."""
    if not isinstance(node, (ast.Name, ast.Attribute)):
        return False
    last = node.id if isinstance(node, ast.Name) else node.attr
    return last[:1].isupper() and names.of_others(_root(node))


def _reaches_state(name: str) -> bool:
    return name in _STATE or name.startswith(_CHANGING)


def _is_special(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


def _root(node: ast.expr) -> str:
    """The name that a chain of attributes and subscripts begins with; "" without one."""
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""
