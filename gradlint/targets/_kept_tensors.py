"""Which arguments of a constructor are tensors, by what the source does with them.

An argument without annotation may be anything. One that becomes a parameter or a buffer, or whose
shape is read, is a tensor; how many axes it has is told by the sizes that are read, or by the
function that forward passes it to.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from gradlint.targets._tensor_arguments import POSITIVE_NAMES, TensorForm
from gradlint.targets.nodes import class_node
from gradlint.targets.source_file import dotted

#: Methods that tensors have and hardly anything else has.
_OF_TENSORS = frozenset(
    {"size", "dim", "numel", "new_zeros", "new_ones", "detach", "clone", "unsqueeze", "contiguous"}
)

#: Functions, by the last part of their names, and the axes of the tensors they multiply with.
_AXES = {"linear": 2, "mm": 2, "mv": 2, "matmul": 2, "conv1d": 3, "conv2d": 4, "conv3d": 5}

#: The first axis, which arguments share: the channels of a weight and of its bias.
_SHARED = "kept.0"


def kept_tensors(cls: type, names: Sequence[str]) -> dict[str, TensorForm]:
    """Argument of the constructor of ``cls`` → its form, for those of ``names`` that the source
    uses as tensors."""
    tree, init = _constructor(cls)
    if tree is None or init is None:
        return {}
    forms = {}
    for name in names:
        if _is_kept(init, name) or any(True for _ in _ranks_read(init, name)):
            holders = {name, *_attributes_of(init, name)}
            rank = max(_ranks(tree, init, name, holders), default=1)
            own = (f"{name}.{axis}" for axis in range(1, rank))
            positive = POSITIVE_NAMES.search(name.lower()) is not None
            forms[name] = TensorForm("float", (_SHARED, *own), positive)
        elif axes := _axes_of_made(init, name):
            positive = POSITIVE_NAMES.search(name.lower()) is not None
            forms[name] = TensorForm("float", axes, positive)
    return forms


#: Functions that make a tensor of the sizes that they are given.
_OF_SIZES = frozenset({"zeros", "ones", "randn", "rand", "empty", "eye", "arange"})


def sizes_of_tensors(cls: type, names: Sequence[str]) -> set[str]:
    """Those of ``names`` that the constructor of ``cls`` gives as a size: ``torch.zeros(models)``
    asks for a number, not for models."""
    _, init = _constructor(cls)
    calls = (
        node
        for node in (ast.walk(init) if init is not None else ())
        if isinstance(node, ast.Call) and (dotted(node.func) or "").startswith("torch.")
    )
    given = (call for call in calls if (dotted(call.func) or "").rpartition(".")[2] in _OF_SIZES)
    found = {arg.id for call in given for arg in call.args if isinstance(arg, ast.Name)}
    return found & set(names)


def _constructor(cls: type) -> tuple[ast.ClassDef | None, ast.FunctionDef | None]:
    """The class that defines the constructor of ``cls``, and its constructor."""
    owner = next((base for base in cls.__mro__ if "__init__" in vars(base)), cls)
    found = class_node(owner)
    if found is None:
        return None, None
    defined = [n for n in found[1].body if isinstance(n, ast.FunctionDef) and n.name == "__init__"]
    return found[1], defined[0] if defined else None


def _axes_of_made(init: ast.FunctionDef, name: str) -> tuple[str, ...]:
    """The axes of an argument of which a tensor is made, as far as the constructor unbinds or
    indexes them; empty where it does neither: it may be a single number."""
    known = {
        target.id
        for node in ast.walk(init)
        if isinstance(node, ast.Assign) and _makes_tensor(node.value, name)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    rank, sizes = 0, {}
    for node in ast.walk(init):
        match node:
            case ast.Assign(
                [ast.Tuple(parts)], ast.Call(ast.Attribute(of, "unbind"), [ast.Constant(int(axis))])
            ) if _is_one(of, known, name):
                rank, sizes[axis] = max(rank, axis + 1), str(len(parts))
            case ast.Subscript(of, ast.Tuple(parts)) if _is_one(of, known, name):
                new = sum(isinstance(part, ast.Constant) and part.value is None for part in parts)
                rank = max(rank, len(parts) - new)
    symbols = (_SHARED, *(f"{name}.{axis}" for axis in range(1, rank)))
    return tuple(sizes.get(axis, symbol) for axis, symbol in enumerate(symbols[:rank]))


def _makes_tensor(node: ast.expr, name: str) -> bool:
    """Whether an expression is a tensor made of the argument: ``torch.as_tensor(name)``."""
    if not isinstance(node, ast.Call) or not node.args:
        return False
    made = (dotted(node.func) or "").rpartition(".")[2] in ("tensor", "as_tensor", "asarray")
    return made and _root(node.args[0]) == name


def _is_one(node: ast.expr, known: set[str], name: str) -> bool:
    """Whether an expression is such a tensor, or one of the local names ``known`` of it."""
    return _makes_tensor(node, name) or (isinstance(node, ast.Name) and node.id in known)


def _is_kept(init: ast.FunctionDef, name: str) -> bool:
    """Whether ``name`` itself becomes a parameter or a buffer, or a method of tensors is called."""
    for node in ast.walk(init):
        if not isinstance(node, ast.Call):
            continue
        called = (dotted(node.func) or "").rpartition(".")
        if called[2] in ("Parameter", "register_buffer", "register_parameter"):
            if any(_root(item) == name for item in node.args):
                return True
        elif called[0] == name and called[2] in _OF_TENSORS:
            return True
    return False


def _root(node: ast.expr) -> str:
    """The name that an expression is, after calls of its methods: ``w.detach().clone()``."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        node = node.func.value
    return node.id if isinstance(node, ast.Name) else ""


def _attributes_of(init: ast.FunctionDef, name: str) -> Iterator[str]:
    """The attributes of ``self`` that hold the argument, or a parameter or buffer made of it."""
    for node in ast.walk(init):
        if isinstance(node, ast.Assign) and _holds(node.value, name):
            yield from (dotted(target) or "" for target in node.targets)
        elif isinstance(node, ast.Call) and (dotted(node.func) or "").endswith("register_buffer"):
            label = node.args[0] if node.args else None
            value = label.value if isinstance(label, ast.Constant) else None
            if isinstance(value, str) and any(_root(item) == name for item in node.args):
                yield f"self.{value}"


def _holds(node: ast.expr, name: str) -> bool:
    if isinstance(node, ast.Call) and (dotted(node.func) or "").endswith("Parameter"):
        return any(_root(item) == name for item in node.args)
    return _root(node) == name


def _ranks(
    tree: ast.ClassDef, init: ast.FunctionDef, name: str, holders: set[str]
) -> Iterator[int]:
    """Numbers of axes that the argument has at least."""
    yield from _ranks_read(init, name)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            axes = _AXES.get((dotted(node.func) or "").rpartition(".")[2], 0)
            if axes and any(dotted(item) in holders for item in node.args[1:2]):
                yield axes
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
            sides = [_of_transposed(side) for side in (node.left, node.right)]
            if any(side in holders for side in sides):
                yield 2


def _of_transposed(node: ast.expr) -> str | None:
    if isinstance(node, ast.Attribute) and node.attr in ("T", "mT"):
        node = node.value
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        node = node.func.value if node.func.attr in ("t", "transpose") else node
    return dotted(node)


def _ranks_read(init: ast.FunctionDef, name: str) -> Iterator[int]:
    """Numbers of axes that reading the shape of ``name`` asks for."""
    for node in ast.walk(init):
        if isinstance(node, ast.Assign) and _is_shape(node.value, name):
            for target in node.targets:
                yield len(target.elts) if isinstance(target, ast.Tuple) else 1
        elif isinstance(node, ast.Subscript) and _is_shape(node.value, name):
            yield _least_rank(node.slice)
        elif isinstance(node, ast.Call) and dotted(node.func) == f"{name}.size" and node.args:
            yield _least_rank(node.args[0])
        elif isinstance(node, ast.Compare) and _is_rank(node.left, name):
            wanted = node.comparators[0]
            if isinstance(wanted, ast.Constant) and type(wanted.value) is int:
                yield wanted.value


def _is_shape(node: ast.expr, name: str) -> bool:
    if isinstance(node, ast.Call) and not node.args:
        return dotted(node.func) == f"{name}.size"
    return dotted(node) == f"{name}.shape"


def _is_rank(node: ast.expr, name: str) -> bool:
    if isinstance(node, ast.Call):
        return dotted(node.func) == f"{name}.dim"
    return dotted(node) == f"{name}.ndim"


def _least_rank(index: ast.expr) -> int:
    """The axes that there are at least where one is asked for by ``index``."""
    try:
        value = ast.literal_eval(index)
    except ValueError:
        return 1
    return max(-value, value + 1) if type(value) is int else 1
