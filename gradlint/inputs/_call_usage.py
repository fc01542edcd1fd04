"""Evidence from calls: which functions and methods the parameters are passed to."""

from __future__ import annotations

import ast
import builtins
import inspect
import os
from collections.abc import Callable, Iterator
from functools import partial
from types import FunctionType
from typing import Any

import torch

from gradlint.inputs import _names
from gradlint.inputs._backward_returns import read_returned_to
from gradlint.inputs._evidence import Evidence
from gradlint.inputs._known_functions import argument_kinds, domain_needed, rank_wanted
from gradlint.inputs._source import (
    custom_operator,
    first_argument,
    is_along_one_axis,
    plain_function,
    resolve,
    syntax,
)
from gradlint.inputs._statements import Statements
from gradlint.inputs.domains import WEAK
from gradlint.targets.source_file import literal

#: Weight of the evidence for a vector that is laid along one axis of another tensor, such as one
#: value for each channel (heuristic: more than the rank of the other tensors counts for).
ALONG_ONE_AXIS = 4.0

#: Functions by which code asks what an argument is.
_ASKING = frozenset({"callable", "isinstance", "hasattr", "getattr", "type"})

#: Functions that compare two tensors element by element, and the weight of the evidence for a
#: tensor of numbers where each holds elements of another argument (heuristic: two such calls
#: outweigh a name such as ``target``). So does a tensor that is detached: an integer has no graph.
_COMPARE_NUMBERS = frozenset({"minimum", "maximum"})
_COMPARED, _DETACHED = 1.5, 2.5

#: How deep calls into the user's own helpers are followed.
_DEPTH = 3

#: Modules whose functions take the names of files (``os.path`` is one of the first three), and
#: other functions that do, with the arguments that are names.
_PATH_MODULES = frozenset({"posixpath", "ntpath", "genericpath", "shutil", "pathlib"})
_TAKE_PATHS: dict[tuple[str, str], tuple[int | str, ...]] = {
    **{("torch", name): (place, "f") for name, place in (("load", 0), ("save", 1))},
    **{("numpy", name): (0, "file", "fname") for name in ("load", "loadtxt", "fromfile", "save")},
    **{
        (module, name): (0, "path", "file")
        for module in ("os", "posix", "nt", "io", "_io")
        for name in ("open", "listdir", "stat", "makedirs", "mkdir", "remove", "fdopen")
    },
}

#: Weight of the evidence for a string that is split where nothing, or a string, says at what.
_SPLIT = 4.0

#: Weight of the evidence for an integer where numbers are counted up to it (heuristic: as much as
#: an exact comparison with one).
_COUNTED = 1.5

#: Functions that take any number of tensors one by one, where their schemas have a list, and the
#: weight of the evidence for a tensor there (heuristic: that of a matrix that is multiplied).
_TAKE_TENSORS = frozenset({"broadcast_tensors", "meshgrid", "block_diag", "cartesian_prod"})
_GIVEN_APART = 4.0

#: Weight of the evidence for an integer where a size is made with a number (heuristic: more than
#: arithmetic with it speaks for a fraction), and methods that are given sizes.
_SIZED = 3.0
_TAKE_SIZES = frozenset(
    {"view", "reshape", "expand", "repeat", "new_zeros", "new_ones", "new_empty", "unflatten"}
)

#: Functions that sort values into others → the position of these.
_SORTED_INTO = {"searchsorted": 0, "bucketize": 1}
#: Weight of the evidence for integers where these are bounds of segments by their name: more than
#: what is left for numbers once a schema has said "Tensor".
_SEGMENTS_SORTED = 6.0

#: The same where it is all that ``range`` takes, or ``torch.arange``, which accepts a fraction
#: (heuristic: with less, arithmetic with the number spoke for a fraction: one sample of 0.7).
_RANGE = 4.0


class Calls(Statements):
    """Reads calls, and follows those into the user's own code."""

    def visit_Call(self, node: ast.Call) -> None:
        found = self.parameter(node.func)
        if found is not None:
            found.say("callable", 4.0)
            found.invoked = True
        if isinstance(node.func, ast.Attribute):
            self._method(node, node.func)
            self._compared_numbers(node, node.func.attr)
        elif isinstance(node.func, ast.Name) and node.func.id == "range" and len(node.args) > 1:
            self._axes_after(node.args[1], node.args[0])  # ``range(2, x.dim())``
        for key, argument in _arguments(node):
            passed = self.parameter(argument)
            if passed is not None:
                self._passed(passed, node, key)
            elif (held := self.root(argument)) is not None:
                self._part_passed(held, node, key)
            elif isinstance(argument, ast.Starred):
                starred = self.parameter(argument.value)
                if starred is not None:
                    starred.say("tensors", 2.0)
                    starred.say("shape", 1.0)
        for keyword in node.keywords:
            if keyword.arg is None:
                spread = self.parameter(keyword.value)
                if spread is not None:
                    spread.say("dict", 6.0)
        self._sorted_into(node)
        self._follow(node)
        self.generic_visit(node)

    def _sorted_into(self, node: ast.Call) -> None:
        """``torch.searchsorted(knots, x)`` and ``torch.bucketize(x, knots)``: knots increase. What
        bounds segments by its name, as ``offsets``, does so in places of an axis."""
        name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        place = _SORTED_INTO.get(name)
        if place is None or len(node.args) <= place:
            return
        held = self.root(node.args[place])
        if held is not None and _names.bounds_segments(held.name):
            held.say("index", _SEGMENTS_SORTED)
        elif held is not None:
            held.domain = held.domain or "ordered"

    def _compared_numbers(self, node: ast.Call, name: str) -> None:
        """``torch.minimum(high, other_high)``, where each is a part of another argument."""
        if name in _COMPARE_NUMBERS and len(node.args) == 2:
            parts = [self.root(argument) for argument in node.args]
            if None not in parts and parts[0] is not parts[1]:
                for part in parts:
                    assert part is not None
                    part.say("tensor", _COMPARED)

    def _method(self, node: ast.Call, method: ast.Attribute) -> None:
        name = method.attr
        if name == "long" and (held := self.root(method.value)) is not None:
            held.cast_to_long = True
        if name in _TAKE_SIZES:
            for argument in node.args:
                new = name.startswith("new_")
                self._makes_size(argument, new=new, alone=len(node.args) == 1)
        if isinstance(method.value, ast.Name) and method.value.id == self.ctx:
            self._context_method(name, [*self._arguments(node.args)])
            return
        owner = self.parameter(method.value)
        if owner is None:
            return
        owner.called.add(name)
        _say_kind(owner, name, node.args)
        numbers = [value for known, value in map(literal, node.args) if known]
        axes = [value for value in numbers if isinstance(value, int)]
        if name == "permute" and len(axes) == len(node.args) > 1:
            owner.rank(len(axes), 6.0)
        elif name in ("view", "reshape") and is_along_one_axis(node.args):
            owner.rank(1, ALONG_ONE_AXIS)
            owner.laid_among = len(axes) if len(axes) == len(node.args) else owner.laid_among
        elif name in ("size", "transpose", "sum", "mean", "unsqueeze", "squeeze", "stride"):
            for axis in axes:
                extra = 0 if name == "unsqueeze" else 1
                owner.at_least(axis + extra if axis >= 0 else -axis - 1 + extra)
        elif name == "size" and axes:
            owner.at_least(axes[0] + 1)

    def _makes_size(self, node: ast.expr, *, new: bool = False, alone: bool = True) -> None:
        """Numbers with which sizes are made are whole: ``x.reshape(n, h * scale)``. Alone, an
        argument may be several sizes.

        Args:
            new: whether something new gets these sizes, as by ``new_zeros(n, 3)``.
            alone: whether no other size stands beside it.
        """
        found = self.parameter(node)
        if found is not None and not alone:
            found.say("int", _SIZED)
            found.sized |= new
        if isinstance(node, (ast.Tuple, ast.List)):
            for part in node.elts:
                self._makes_size(part, new=new, alone=False)
        elif isinstance(node, ast.BinOp) and not isinstance(node.op, ast.Div):
            for side in (node.left, node.right):
                listed = isinstance(side, (ast.Tuple, ast.List))  # ``(n,) + x.shape[1:]``
                self._makes_size(side, new=new and listed, alone=isinstance(side, ast.Call))

    def _arguments(self, nodes: list[ast.expr]) -> Iterator[Evidence | None]:
        """The parameters that are passed on; all of them for ``*inputs`` of ``setup_context``."""
        for node in nodes:
            starred = node.value if isinstance(node, ast.Starred) else None
            if isinstance(starred, ast.Name) and self.inputs and starred.id == self.inputs[0]:
                yield from self.inputs[1]
            else:
                yield self.parameter(node)

    def _context_method(self, name: str, arguments: list[Evidence | None]) -> None:
        """``ctx.save_for_backward(…)`` and the like: their arguments are tensors."""
        if name == "save_for_backward":
            self.saved[:] = arguments
            for index, item in enumerate(arguments):
                if item is not None:
                    item.saved = index
        if name in ("save_for_backward", "mark_dirty", "mark_non_differentiable"):
            for item in arguments:
                if item is not None:
                    item.say("any", 3.0 if name != "mark_dirty" else 5.0)

    def _passed(self, found: Evidence, call: ast.Call, key: int | str) -> None:
        """The parameter is an argument of ``call``."""
        if key in ("dtype", "device", "generator"):
            found.say("none" if key == "generator" else str(key), 4.0)
            return
        if isinstance(call.func, ast.Name) and hasattr(builtins, call.func.id):
            self._builtin(found, call, key)
            return
        if self._takes_path(call, key):
            found.path = True
            return
        rank = rank_wanted(call, key)
        if rank is not None:
            found.say("any", 3.0)
            found.rank(rank, 5.0)
        target = resolve(call.func, self.globals)
        module = getattr(target, "__module__", None) or ""
        name = getattr(target, "__name__", "")
        if module == "math":
            found.say("float", 2.0)
        elif module.startswith("numpy") or type(target).__module__.startswith("numpy"):
            found.say("tensor", 1.0)
        elif target is not None and (module.startswith("torch") or _is_torch_builtin(target)):
            self._passed_to_torch(found, call, key, name)
        elif isinstance(call.func, ast.Attribute) and target is None:
            for kind, weight in argument_kinds(call.func.attr, key, True):
                found.say(kind, 0.8 * weight)

    def _passed_to_torch(self, found: Evidence, call: ast.Call, key: int | str, name: str) -> None:
        """The parameter is an argument of torch's function ``name``."""
        if name in _TAKE_TENSORS:
            found.say("tensor", _GIVEN_APART)
            return
        for kind, weight in argument_kinds(name, key, False):
            found.say(kind, weight)
        if key == 0:
            needed = domain_needed(name)
            found.domain = (found.domain or needed) if needed in WEAK else needed or found.domain
        elif name == "cholesky_solve" and key in (1, "L"):
            upper = [literal(k.value) == (True, True) for k in call.keywords if k.arg == "upper"]
            found.domain = found.domain or ("triu" if any(upper) else "tril")
        found.made_tensor |= name == "as_tensor"
        if name == "arange":
            alone = len(call.args) == 1 and key == 0
            found.say("int", _RANGE if alone else _COUNTED)
            found.sliced |= alone or key in (1, "end")
        if name == "sparse_coo_tensor":
            self._of_sparse(found, call, key)

    def _part_passed(self, found: Evidence, call: ast.Call, key: int | str) -> None:
        """Elements of the parameter are an argument of ``call``: only that they are integers is
        then known of it."""
        method = isinstance(call.func, ast.Attribute) and resolve(call.func, self.globals) is None
        name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        for kind, weight in argument_kinds(name, key, method) if name else ():
            if kind == "index":
                found.say("index", 0.8 * weight)
                found.indexes = True

    def _takes_path(self, call: ast.Call, key: int | str) -> bool:
        """Whether an argument of ``call`` names a file or a folder."""
        target = resolve(call.func, self.globals)
        if isinstance(target, type) and issubclass(target, os.PathLike):
            return True
        module = (getattr(target, "__module__", None) or "").partition(".")[0]
        name = getattr(target, "__name__", "")
        return module in _PATH_MODULES or key in _TAKE_PATHS.get((module, name), ())

    def _of_sparse(self, found: Evidence, call: ast.Call, key: int | str) -> None:
        """``torch.sparse_coo_tensor(indices, values, size)`` of a matrix: two rows of indices, as
        many values as these have columns, and two sizes."""
        given = dict(_arguments(call))
        indices = self.parameter(given.get(0, given.get("indices")))
        columns = f"{indices.name}.1" if indices is not None else f"{found.name}.0"
        if key in (0, "indices"):
            found.say("index", 5.0)
            found.shape = found.shape or ("=2", columns)
        elif key in (1, "values"):
            found.say("tensor", 3.0)
            found.shape = found.shape or (columns,)
        elif key in (2, "size"):
            found.say("shape", 3.0)
            found.length = found.length or 2

    def _builtin(self, found: Evidence, call: ast.Call, key: int | str) -> None:
        name = call.func.id if isinstance(call.func, ast.Name) else ""
        found.asked |= name in _ASKING and key == 0
        if name == "range":
            found.say("int", _RANGE)
        elif name == "len":
            for kind in ("tensors", "shape"):
                found.say(kind, 1.0)
        elif name in ("enumerate", "zip", "list", "tuple", "sum"):
            found.say("tensors", 1.0)
        elif name == "float":
            found.say("float", 1.0)
        elif name in ("int", "round"):
            found.say("int", 1.0)
            found.say("float", 0.5)
        elif name == "callable":
            found.say("callable", 1.0)
        elif name == "open" and key in (0, "file"):
            found.path = True
        elif name == "isinstance" and key == 0:
            self._isinstance(call, 0.8)

    def _follow(self, call: ast.Call) -> None:
        if self.depth >= _DEPTH:
            return
        applied = self._applied(call.func)
        if applied is not None:
            self._follow_into(applied, call)
            return
        target = self._callee(call.func)
        made = custom_operator(target)
        function = plain_function(target if made is None else getattr(made, "_init_fn", None))
        if function is None or function is self.function or self._is_library(function):
            return
        tree = syntax(function)
        if tree is None:
            return
        parameters = [argument.arg for argument in (*tree.args.posonlyargs, *tree.args.args)]
        if inspect.ismethod(target) or self._is_of_instance(call.func):
            parameters = parameters[1:]
        names: dict[str, Evidence] = {}
        parts: dict[str, Evidence] = {}
        ctx = ""
        for key, argument in _arguments(call):
            name = key if isinstance(key, str) else parameters[key] if key < len(parameters) else ""
            found = self.parameter(argument)
            held = self.root(argument) if found is None else None
            if name and found is not None:
                names[name] = found
            elif name and held is not None:
                parts[name] = held
            elif name and isinstance(argument, ast.Name) and argument.id == self.ctx:
                ctx = name
        backward = plain_function(getattr(made, "_backward_fn", None))
        if backward is not None:
            read_returned_to(backward, [self.parameter(argument) for argument in call.args])
        if names or parts:
            reader = type(self)(
                names,
                function,
                owner=self.owner,
                ctx=ctx,
                attributes=self.attributes,
                saved=self.saved,
                depth=self.depth + 1,
            )
            reader.derived.update(parts)
            reader.read()

    def _applied(self, node: ast.expr) -> type | None:
        """The Function of the user's that ``Other.apply(…)`` applies."""
        if not (isinstance(node, ast.Attribute) and node.attr == "apply"):
            return None
        owner = resolve(node.value, self.globals)
        known = isinstance(owner, type) and issubclass(owner, torch.autograd.Function)
        return owner if known and owner is not self.owner else None

    def _follow_into(self, owner: type, call: ast.Call) -> None:
        """Read the Function ``owner`` for what is passed to it: a wrapper says of its parameters
        little more than that."""
        forward = plain_function(getattr(owner, "forward", None))
        tree = syntax(forward) if forward is not None else None
        plain = [argument for argument in call.args if not isinstance(argument, ast.Starred)]
        whole = self._behind(call, tree) if len(plain) < len(call.args) else None
        unknown = whole is None and len(plain) < len(call.args)
        if forward is None or tree is None or unknown or self._is_library(forward):
            return
        parameters = [argument.arg for argument in (*tree.args.posonlyargs, *tree.args.args)]
        setup = plain_function(getattr(owner, "setup_context", None))
        separate = setup is not None and not setup.__module__.startswith("torch.autograd.")
        ctx = "" if separate or not parameters else parameters.pop(0)
        passed = [self.parameter(argument) for argument in plain]
        names = {n: p for n, p in zip(parameters, passed, strict=False) if p is not None}
        held: dict[str, Evidence] = {}
        if whole is not None and tree.args.vararg is not None:
            names[tree.args.vararg.arg] = whole
            held = self._held(parameters, plain)
        if not names:
            return
        names.update(held)
        attributes: dict[str, Evidence] = {}
        saved: list[Evidence | None] = []
        within = partial(
            type(self), owner=owner, attributes=attributes, saved=saved, depth=self.depth + 1
        )
        within(names, forward, ctx=ctx).read()
        tree = syntax(setup) if separate and setup is not None else None
        arguments = [argument.arg for argument in tree.args.args][-3:] if tree else []
        if setup is not None and len(arguments) == 3:
            inputs = [item or Evidence("") for item in passed]
            within({}, setup, ctx=arguments[0], inputs=(arguments[1], inputs)).read()
        backward = plain_function(getattr(owner, "backward", None))
        if backward is not None and not self._is_library(backward):
            within({}, backward, ctx=first_argument(backward)).read()
            read_returned_to(backward, passed)
        for item in held.values():
            if whole is not None and item.for_each_of == whole.name:
                whole.counted_by = whole.counted_by or item.name

    def _behind(self, call: ast.Call, tree: ast.FunctionDef | None) -> Evidence | None:
        """The parameter that stands for ``*args`` where a call passes it on as the last argument to
        a function that takes ``*args``: ``Other.apply(self.w, *features)``."""
        last = call.args[-1]
        one = sum(isinstance(argument, ast.Starred) for argument in call.args) == 1
        if not one or not isinstance(last, ast.Starred) or tree is None or not tree.args.vararg:
            return None
        before = len(tree.args.posonlyargs) + len(tree.args.args) - len(call.args) + 1
        return self.parameter(last.value) if before in (0, 1) else None  # with a context, or none

    @staticmethod
    def _held(parameters: list[str], given: list[ast.expr]) -> dict[str, Evidence]:
        """Evidence about the attributes of the module that it passes on, by the names that they
        have there: of the attribute's name."""
        return {
            name: Evidence(argument.attr)
            for name, argument in zip(parameters, given, strict=False)
            if isinstance(argument, ast.Attribute)
            and isinstance(argument.value, ast.Name)
            and argument.value.id == "self"
        }

    def _is_library(self, function: Callable[..., Any]) -> bool:
        module = function.__module__ or ""
        known = ("torch", "numpy", "math", "functools", "typing", "inspect")
        return module != self.function.__module__ and module.split(".")[0] in known

    def _callee(self, node: ast.expr) -> Any:
        if isinstance(node, ast.Attribute) and self.owner is not None:
            value = node.value
            if isinstance(value, ast.Name) and value.id in ("cls", "self"):
                return getattr(self.owner, node.attr, None)
            called = value.func if isinstance(value, ast.Call) else None
            if isinstance(called, ast.Name) and called.id == "super":
                return self._inherited(node.attr)
        target = resolve(node, self.globals)
        if target is None and isinstance(node, ast.Name):
            return _closure(self.function).get(node.id)
        return target

    def _is_of_instance(self, node: ast.expr) -> bool:
        """Whether ``self.method`` is called, which is passed ``self`` too."""
        if not (isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)):
            return False
        held = inspect.getattr_static(self.owner, node.attr, None) if self.owner else None
        return node.value.id == "self" and isinstance(held, FunctionType)

    def _inherited(self, name: str) -> Any:
        seen = False
        for cls in self.owner.__mro__ if self.owner else ():
            own = cls.__dict__.get(name)
            if own is None:
                continue
            if seen:
                return getattr(super(_child(self.owner, cls), self.owner), name, None)
            seen = plain_function(own) is self.function
        return None


def _child(owner: type | None, parent: type) -> Any:
    """The class just before ``parent`` in ``owner``'s order of resolution."""
    order = owner.__mro__ if owner else ()
    return order[max(order.index(parent) - 1, 0)]


def _arguments(call: ast.Call) -> list[tuple[int | str, ast.expr]]:
    found: list[tuple[int | str, ast.expr]] = list(enumerate(call.args))
    return found + [(item.arg, item.value) for item in call.keywords if item.arg]


def _closure(function: Callable[..., Any]) -> dict[str, Any]:
    try:
        return dict(inspect.getclosurevars(function).nonlocals)
    except Exception:
        return {}


def _is_torch_builtin(target: Any) -> bool:
    name = getattr(target, "__name__", "")
    return bool(name) and getattr(torch, name, None) is target


def _say_kind(owner: Evidence, method: str, arguments: list[ast.expr]) -> None:
    """What a method that is called says of the kind of its owner."""
    if method == "detach":
        owner.say("tensor", _DETACHED)
    if method == "split" and all(isinstance(literal(item)[1], str) for item in arguments):
        owner.say("str", _SPLIT)
