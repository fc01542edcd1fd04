"""All evidence about an op's parameters."""

from __future__ import annotations

import ast
import enum
import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from types import MappingProxyType
from typing import Any

import torch

from gradlint.inputs import _names
from gradlint.inputs._annotations import (
    read_annotation,
    read_annotation_text,
    read_default,
    read_docs,
    read_name,
    read_text,
)
from gradlint.inputs._attributes import give_fields, objects_among, taken_apart
from gradlint.inputs._backward_returns import read_returns, returns_its_arguments
from gradlint.inputs._clamped import clamped_ends
from gradlint.inputs._evidence import MISSING, Evidence
from gradlint.inputs._extents import interleaved, lengths, measured, readings
from gradlint.inputs._held_parameters import axes_of_parameter
from gradlint.inputs._iterations import iterated_matrices
from gradlint.inputs._ordered_numbers import ordered_numbers
from gradlint.inputs._proposals import bounds_segments, integer_domain
from gradlint.inputs._read_bounds import read_bounds
from gradlint.inputs._signs import of_either_sign
from gradlint.inputs._source import first_argument, plain_function, resolve, syntax
from gradlint.inputs._usage import Reader
from gradlint.inputs.documentation import prose_of_arguments
from gradlint.inputs.handed_on import handed_on, texts_of_callees
from gradlint.inputs.stand_ins import ClosureModule
from gradlint.model.op import Op
from gradlint.model.sample import has_fields
from gradlint.targets.calls import Hint, call_hints
from gradlint.targets.own_objects import own_objects

#: Names that stand for the inputs of an attention together.
_ATTENTION = ({"q", "k", "v"}, {"query", "key", "value"}, {"queries", "keys", "values"})
#: Kinds of argument by the type of a value that is passed.
_KIND_OF_VALUE: tuple[tuple[str, Any], ...] = (
    ("bool", bool),
    ("int", int),
    ("float", float),
    ("str", str),
    ("shape", (tuple, list)),
    ("dict", dict),
)
#: Weight of the evidence for a number of axes where a module passes a parameter that has as many:
#: as what the code asserts.
_OF_PARAMETER = 4.0
#: Members of a sequence, at most, that are made for as many weights.
_MOST_MEMBERS = 16
#: Weight of the evidence for two axes where an argument says which one: above that of a name, below
#: that of what the code asserts.
_ALONG_AN_AXIS = 2.0


def gather(op: Op, held: Mapping[str, Any] = MappingProxyType({})) -> list[Evidence]:
    """One :class:`Evidence` for every parameter of ``op``, in order.

    Args:
        op: the operator.
        held: objects to pass for some of the parameters.
    """
    found = _of_signature(op)
    _read(op, found)
    forward, _ = _forward(op)
    objects = objects_among(found, forward) if op.signature is not None else {}
    objects = {name: read for name, read in objects.items() if name not in held}
    if objects:
        beyond = {item.name: item.beyond for item in found}
        found = _of_signature(op)
        for item in found:
            if item.name in objects:
                give_fields(item, objects[item.name], of_function=op.kind == "function")
        _read(op, found)
        found = taken_apart(found, objects)
        for item in found:
            item.beyond = beyond.get(item.name.partition(".")[0], set())
    _relate(found)
    _give_parameters(found)
    _count_by_held(op, found)
    for evidence in found:
        if evidence.passing == "varargs" and not evidence.length:
            evidence.weights = {"tensors": 5.0}
        if evidence.name in held:
            evidence.weights, evidence.values = {"value": _HELD}, [held[evidence.name]]
            evidence.classes, evidence.fields = [], {}
    return found


#: Weight of an object that was chosen (heuristic: more than that of an annotation).
_HELD = 10.0


def objects_for(op: Op) -> dict[str, list[Any]]:
    """Parameter → objects of the package's own classes that it may be, for those that need one."""
    found = _of_signature(op)
    _read(op, found)
    made = {
        item.name: list(islice(_own_objects(op, item), _MOST_OBJECTS))
        for item in found
        if item.required and not item.fields and not item.path
    }
    return {name: objects for name, objects in made.items() if objects}


#: Objects that are tried for one parameter.
_MOST_OBJECTS = 3


def _own_objects(op: Op, item: Evidence) -> Iterator[Any]:
    owner = op.function or op.defining
    module = getattr(owner, "__module__", None) or ""
    classes = [
        cls
        for cls in dict.fromkeys(
            [*item.classes, *_named_classes(op, item.name), *_classes_told(op, item.name)]
        )
        if not issubclass(cls, (torch.Tensor, enum.Enum)) and cls.__module__ not in _NO_CLASSES
    ]
    hints = call_hints(owner) if owner is not None else []
    by_self = any(call[item.name].name == "self" for call in hints if item.name in call)
    if classes or item.called or by_self:
        yield from own_objects(module, classes, item.called, item.read, by_self=by_self)


def _named_classes(op: Op, name: str) -> list[type]:
    """The class that the text of an annotation names."""
    forward, _ = _forward(op)
    parameters = op.signature.parameters if op.signature is not None else {}
    text = parameters[name].annotation if name in parameters else None
    if forward is None or not isinstance(text, str):
        return []
    try:
        expression = ast.parse(text.strip("'\""), mode="eval").body
    except SyntaxError:
        return []
    named = resolve(expression, getattr(forward, "__globals__", {}))
    return [named] if isinstance(named, type) else []


def _classes_told(op: Op, name: str) -> list[type]:
    """The class of its own package that documentation gives as the type of an argument: ":param
    Kernel kernel:", "kernel (Kernel): …", "kernel : Kernel"."""
    forward, _ = _forward(op)
    said = prose_of_arguments(op.function or op.defining) if forward is not None else ""
    own = rf"`*{re.escape(name)}`*"
    told = re.search(
        rf"(?m):param\s+([\w.]+)\s+{own}\s*:|^\s*{own}\s*\(\s*([\w.]+)|^\s*{own}\s*:\s*([\w.]+)",
        said,
    )
    text = next(filter(None, told.groups()), "") if told else ""
    if forward is None or not all(map(str.isidentifier, text.split("."))):
        return []
    named = resolve(ast.parse(text, mode="eval").body, forward.__globals__)
    home = forward.__module__.partition(".")[0]
    own_class = isinstance(named, type) and named.__module__.partition(".")[0] == home
    return [named] if own_class else []


#: Modules whose classes are those of functions and containers.
_NO_CLASSES = frozenset({"builtins", "typing", "types", "collections.abc"})


def _count_by_held(op: Op, found: list[Evidence]) -> None:
    """As many members of a sequence as the module holds elements that go with them: weights."""
    for item in found:
        held = vars(op.module).get(item.counted_by) if op.module is not None else None
        parameters = op.module._parameters if op.module is not None else {}
        held = parameters.get(item.counted_by, held)
        if isinstance(held, torch.Tensor) and held.dim() and 0 < len(held) <= _MOST_MEMBERS:
            item.length = len(held)


def _of_signature(op: Op) -> list[Evidence]:
    """What the signature says: names, defaults and annotations."""
    signature = op.signature
    parameters = list(signature.parameters.values()) if signature is not None else []
    found = []
    for parameter in parameters:
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            continue
        passing = "positional"
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            passing = "varargs"
        elif parameter.kind is inspect.Parameter.KEYWORD_ONLY:
            passing = "keyword"
        default = MISSING if parameter.default is inspect.Parameter.empty else parameter.default
        evidence = Evidence(parameter.name, passing, default)
        read_default(evidence)
        read_name(evidence)
        read_annotation(evidence, _annotation(op, parameter))
        found.append(evidence)
    schema = _schema(op)
    if schema is not None:
        found = _from_schema(schema)
    elif signature is None:
        found = [Evidence("args", "varargs")]
    return found


def _read(op: Op, found: list[Evidence]) -> None:
    """Add what the code of the op, and that around it, says."""
    _read_code(op, found)
    _read_calls(op, found)
    _read_clamps(op, found)


def _annotation(op: Op, parameter: inspect.Parameter) -> Any:
    """The annotation of a parameter: where its text names a class with fields, that class."""
    forward, _ = _forward(op)
    text = parameter.annotation
    names = getattr(forward, "__globals__", {})
    named = names.get(text) if isinstance(text, str) else None
    return named if isinstance(named, type) and has_fields(named) else text


def _relate(found: list[Evidence]) -> None:
    """Add evidence about a parameter from what is known about the others."""
    for item in found:
        _read_tuples(item)
    tensors = [item for item in found if item.tensorness > 0]
    _relate_names(tensors, {item.name.lower() for item in found})
    for item in tensors:
        if integer_domain(item.name, []) == "pointers" or bounds_segments(item):
            item.rank(1, 3.0)  # bounds of segments along one axis
    if tensors and any(_names.matches("dim axis dimension", item.name) for item in found):
        tensors[0].rank(2, _ALONG_AN_AXIS)  # of one axis, there would be nothing to choose
    known = [(max(item.ranks.values()), item) for item in tensors if item.ranks]
    likely = [max(item.ranks, key=item.ranks.__getitem__) for weight, item in known if weight >= 4]
    common = max(likely, default=0)
    if not common:
        return
    for item in tensors:
        # A tensor without evidence most likely has the rank of the others.
        if item.summed and item is not tensors[0]:
            continue  # it may be a scalar
        if not item.ranks or item.name.lower() in set().union(*_ATTENTION):
            item.rank(common, 2.0)


def _relate_names(tensors: list[Evidence], names: set[str]) -> None:
    """Numbers of axes of tensors whose names belong together."""
    for group in _ATTENTION:
        if len(group & names) >= 2:
            for item in tensors:
                if item.name.lower() in group:
                    for rank, weight in ((3, 1.0), (4, 0.8)):
                        item.rank(rank, weight)
    if {"gamma", "beta"} <= names:
        # A scale and a shift: one value a channel.
        for item in tensors:
            if item.name.lower() in ("gamma", "beta"):
                item.rank(1, 2.0)


def _read_tuples(item: Evidence) -> None:
    """Rows or columns that are used as indices: a mask has none."""
    if item.indexes and item.shape_of_tuples and not item.shape:
        item.shape = item.shape_of_tuples
        item.say("index", 3.0)


def _give_parameters(found: list[Evidence]) -> None:
    """Modules whose parameters are read own the tensors in ``*args``, where there are any."""
    owners = [item for item in found if item.has_parameters]
    if found and found[-1].passing == "varargs":
        for place, item in enumerate(owners):
            item.suggest(ClosureModule(len(found) - 1, place, len(owners)), first=True)


def _take_as_constants(forward: Callable[..., Any], found: list[Evidence]) -> None:
    """What a module or a function detaches wherever it uses it is a constant to it, but for the
    first argument: ``_Choice.apply(logits, noise.detach())``."""
    tree = syntax(forward)
    if tree is None:
        return
    for item in found[1:]:
        parents = [
            parent
            for parent in ast.walk(tree)
            for child in ast.iter_child_nodes(parent)
            if isinstance(child, ast.Name) and child.id == item.name
        ]
        used = [p for p in parents if not isinstance(p, (ast.Compare, ast.Assign))]
        detached = [p for p in used if isinstance(p, ast.Attribute) and p.attr == "detach"]
        if used and len(detached) == len(used):
            item.differentiable = False


def _read_code(op: Op, found: list[Evidence]) -> None:
    forward, owner = _forward(op)
    if forward is None:
        return
    names = {evidence.name: evidence for evidence in found}
    attributes: dict[str, Evidence] = {}
    saved: list[Evidence | None] = []
    shared: dict[str, Any] = {"owner": owner, "attributes": attributes, "saved": saved}
    ctx = first_argument(forward) if owner is not None else ""
    if ctx in names:
        ctx = ""
    Reader(dict(names), forward, ctx=ctx, **shared).read()
    if owner is not None and op.function is not None:
        setup = plain_function(getattr(owner, "setup_context", None))
        tree = syntax(setup) if setup is not None and not _from_torch(setup) else None
        if setup is not None and tree is not None:
            arguments = [argument.arg for argument in tree.args.args]
            # classmethods take cls first
            arguments = arguments[-3:]
            if len(arguments) == 3:
                Reader({}, setup, ctx=arguments[0], inputs=(arguments[1], found), **shared).read()
        backward = plain_function(getattr(owner, "backward", None))
        if backward is None or _from_torch(backward):
            backward = plain_function(getattr(owner, "vjp", None))
        if backward is not None and not _from_torch(backward):
            known = {item.name: set(item.read) for item in found}
            Reader({}, backward, ctx=first_argument(backward), **shared).read()
            for item in found:
                item.beyond = set(item.read) - known[item.name]
            read_returns(backward, found)
            _as_many_as_outputs(backward, found)
    if op.function is None:
        _take_as_constants(forward, found)
    read_docs([forward, owner], found)
    _beside_laid(found)
    _read_casts(found)
    _read_storage(forward, found)
    _read_bounds([forward, owner], found)
    _read_handed_on(op, found)
    _read_extents(forward, names)
    _read_signs(forward, names)
    _read_order(owner, names)
    for name in iterated_matrices(forward):
        if name in names and not names[name].domain:
            names[name].domain = "contraction"


#: Weight of integers where the code casts a tensor to them (heuristic: as that of an index).
_CAST = 3.0


def _read_casts(found: list[Evidence]) -> None:
    """What is cast to integers as it is, and gets no gradient, holds integers."""
    for item in found:
        if item.cast_to_long and item.differentiable is False:
            item.say("index", _CAST)


#: Weight of the number of axes of what others are laid along an axis of (heuristic: two ranks that
#: are usual are tried after it).
_BESIDE = 2.0


def _beside_laid(found: list[Evidence]) -> None:
    """Where vectors are laid along one of several axes, as in ``bias.view(1, -1, 1, 1)``, it is for
    the first tensor beside them, which has as many: it would broadcast with fewer, and backward not
    expect it."""
    counts = {item.laid_among for item in found if item.laid_among}
    others = [item for item in found if item.tensorness > 0 and not item.laid_among]
    if len(counts) == 1 and others and not others[0].ranks and not others[0].shape:
        others[0].rank(counts.pop(), _BESIDE)


#: Weight against a tensor of what is stored as an attribute and gets no gradient: enough between
#: kinds that are about as likely (heuristic).
_KEPT = 1.0

#: Weight of having no axes of a tensor that forward does nothing with but save it.
_SAVED_ONLY = 3.0


def _read_storage(forward: Callable[..., Any], found: list[Evidence]) -> None:
    """How a Function stores arguments that get no gradient: numbers as attributes of the context,
    tensors by ``save_for_backward``. A tensor that forward only saves broadcasts in backward."""
    tree = syntax(forward)
    for item in found:
        if item.differentiable is not False:
            continue
        if item.saved is not None:
            for kind in ("int", "float", "bool"):
                item.weights.pop(kind, None)
            used = tree is None or _is_used(tree, item.name)
            if not used and not item.ranks and not item.least_rank:
                item.rank(0, _SAVED_ONLY)
        elif item.kept and item.weights.get("any", 0.0) <= 0.0:
            item.say("tensor", -_KEPT)


def _is_used(tree: ast.FunctionDef, name: str) -> bool:
    """Whether a function does anything with a name but save it for backward."""
    saving = {
        id(argument)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "save_for_backward"
        for argument in node.args
    }
    return any(
        isinstance(node, ast.Name) and node.id == name and id(node) not in saving
        for node in ast.walk(tree)
        if isinstance(getattr(node, "ctx", None), ast.Load)
    )


def _as_many_as_outputs(backward: Callable[..., Any], found: list[Evidence]) -> None:
    """One argument behind ``*args`` where backward returns for them what it gets for the outputs,
    and these are those of a function that is passed: stand-ins have one output."""
    last = found[-1] if found else None
    if last is None or last.passing != "varargs" or last.length:
        return
    passed = any(
        item.required and item.ordered_kinds()[0][0] in ("callable", "module") for item in found
    )
    if passed and returns_its_arguments(backward, len(found) - 1):
        last.length = 1


def _read_order(owner: Any, names: dict[str, Evidence]) -> None:
    for low, high in ordered_numbers(owner, names):
        names[high].above.add(low)


def _read_bounds(things: list[Any], found: list[Evidence]) -> None:
    """Bounds between arguments, from documentation and from what forward refuses."""
    names = {item.name: item for item in found}
    said = "\n".join(prose_of_arguments(thing) for thing in things if thing is not None)
    for bound in read_bounds(said, things[0], found):
        for name in dict.fromkeys(side.of for side in (bound.less, bound.more)):
            if isinstance(name, str) and name in names:
                names[name].bounds.append(bound)


def _read_handed_on(op: Op, found: list[Evidence]) -> None:
    """What the documentation of Functions, or else of plain functions, says of arguments that they
    get as they are, where that of the op itself tells no shapes: symbols of two texts may mean
    different sizes."""
    if any(item.shape for item in found):
        return
    for applied, names in handed_on(op):
        given = [item for item in found if item.name in names]
        if given:
            read_docs([applied], given, by_name_alone=True)
            _read_bounds([plain_function(getattr(applied, "forward", None)), applied], given)
    for text, names in texts_of_callees(op):
        if not any(item.shape for item in found):
            read_text(text, [item for item in found if item.name in names], by_name_alone=True)


def _read_extents(forward: Callable[..., Any], names: dict[str, Evidence]) -> None:
    """How far loops read along the axes of each parameter."""
    found = readings(forward, names)
    for (name, axis), length in lengths(found).items():
        names[name].lengths[axis] = length
    for name, axis in measured(found):
        names[name].measured.add(axis)
    for (name, axis), step in interleaved(found).items():
        names[name].interleaved[axis] = step


def _read_signs(forward: Callable[..., Any], names: dict[str, Evidence]) -> None:
    """Which numbers the code takes below zero as well as above."""
    tree = syntax(forward)
    for name in of_either_sign(tree) if tree is not None else ():
        if name in names:
            names[name].either_sign = True


#: Ends of a range, of whole numbers and of others (heuristic: values are beyond both of them).
_WHOLE_ENDS, _ENDS = (-2, 1), (-0.6, 0.7)

#: Weight of an integer where what is rounded is clamped to it: that of an annotation, nearly.
_LEVEL = 5.0


def _read_clamps(op: Op, found: list[Evidence]) -> None:
    """Numbers between which the code clamps: the lower one is below the upper one, and where what
    is clamped is rounded, both are whole. What callers pass comes first."""
    forward, _ = _forward(op)
    tree = syntax(forward) if forward is not None else None
    names = {item.name: item for item in found}
    for ends in clamped_ends(tree) if tree is not None else ():
        for name, whole, other in zip((ends.low, ends.high), _WHOLE_ENDS, _ENDS, strict=True):
            item = names.get(name)
            if item is None or item.default is not MISSING or item.differentiable:
                continue
            if any(type(value) in (int, float) for value in item.values):
                continue
            if ends.whole:
                item.say("int", _LEVEL)
            item.suggest(whole if ends.whole else other)


def has_imaginary(op: Op) -> bool:
    """Whether forward computes with imaginary numbers: ``1j`` stands in its code."""
    forward, _ = _forward(op)
    code = getattr(forward, "__code__", None)
    return code is not None and any(isinstance(item, complex) for item in code.co_consts)


def _forward(op: Op) -> tuple[Callable[..., Any] | None, type | None]:
    """The Python function behind ``op`` and, for a Function or module, its class."""
    if op.function is not None:
        return plain_function(getattr(op.function, "forward", None)), op.function
    if op.module is not None:
        return plain_function(type(op.module).forward), type(op.module)
    return plain_function(op.call) or plain_function(op.defining), None


def _from_torch(function: Callable[..., Any]) -> bool:
    return (function.__module__ or "").startswith("torch.autograd.")


def _read_calls(op: Op, found: list[Evidence]) -> None:
    """Values and names that the code around the op passes to it."""
    target = op.function or (type(op.module) if op.module is not None else op.defining or op.call)
    if target is None or op.kind not in ("function", "callable") or _settled(found):
        return
    sites = call_hints(target)
    names = {evidence.name: evidence for evidence in found}
    for site in sites:
        for name, hint in site.items():
            if name in names:
                _read_hint(op, names[name], hint)


def _read_hint(op: Op, evidence: Evidence, hint: Hint) -> None:
    """What a call passes for one parameter."""
    if hint.known and hint.value is None:
        evidence.optional = True
        evidence.say("none", 0.5)
        return
    if hint.known:
        evidence.suggest(hint.value)
        kind = next((k for k, types in _KIND_OF_VALUE if isinstance(hint.value, types)), "")
        if kind:
            evidence.say(kind, 2.5)
    if evidence.weights.get("callable", 0.0) > 0 and not hint.known:
        _suggest_function(op, evidence, hint.expression)
    if match := re.search(r"\.unsqueeze\((-?\d+)\)$", hint.expression):
        evidence.unit_axes.append(int(match.group(1)))
    axes = axes_of_parameter(hint.expression)
    if axes is not None:
        evidence.say("tensor", 2.5)
        evidence.rank(len(axes), _OF_PARAMETER)
    read_annotation_text(evidence, hint.annotation, 2.0)
    if hint.name and hint.name != evidence.name:
        other = Evidence(hint.name)
        read_name(other)
        for kind, weight in other.weights.items():
            evidence.say(kind, 0.4 * weight)


def _suggest_function(op: Op, evidence: Evidence, expression: str) -> None:
    """The function that a call passes where one is wanted: ``torch.round``."""
    forward, _ = _forward(op)
    node = ast.parse(expression, mode="eval").body
    made = resolve(node, getattr(forward, "__globals__", {}))
    if callable(made) and not isinstance(made, type):
        evidence.suggest(made)


def _settled(found: list[Evidence]) -> bool:
    """Whether call sites could not add anything: one certain tensor is all that must be passed."""
    required = [item for item in found if item.required]
    if len(required) != 1:
        return False
    kinds = required[0].ordered_kinds()
    return kinds[0][0] == "tensor" and kinds[1][1] >= 1.0


def _schema(op: Op) -> Any:
    """The schema of a library op, or of a function of torch without a Python signature: that of the
    overload, or of the first usable overload."""
    called: Any = op.call
    if op.kind != "library":
        name = getattr(called, "__name__", "")
        if op.signature is not None or getattr(torch, name, None) is not called:
            return None
        called = getattr(torch.ops.aten, name, None)
    # What ``custom_op`` makes holds the text of its schema, and the overload that it registered.
    schema = getattr(getattr(called, "_opoverload", called), "_schema", None)
    if schema is not None:
        return schema
    try:
        names = called.overloads()
        chosen = "default" if "default" in names else names[0]
        return getattr(called, chosen)._schema
    except Exception:
        return None


def _from_schema(schema: Any) -> list[Evidence]:
    found = []
    for argument in schema.arguments:
        default = MISSING
        if argument.has_default_value():
            default = argument.default_value
        evidence = Evidence(
            argument.name, "keyword" if argument.kwarg_only else "positional", default
        )
        read_default(evidence)
        read_name(evidence)
        text = str(argument.type)
        inner = re.sub(r"^Optional\[(.*)\]$", r"\1", text)
        evidence.optional = evidence.optional or inner != text
        kind = {
            "Tensor": "tensor",
            "List[Tensor]": "tensors",
            "List[int]": "shape",
            "List[SymInt]": "shape",
            "List[float]": "floats",
            "int": "int",
            "SymInt": "int",
            "float": "float",
            "number": "float",
            "bool": "bool",
            "str": "str",
            "Device": "device",
            "ScalarType": "dtype",
        }.get(inner, "none" if evidence.optional else "tensor")
        evidence.say(kind, 20.0)
        if kind == "tensor":
            for other in ("index", "mask"):
                if other in evidence.weights:
                    evidence.say(other, 16.0)
        found.append(evidence)
    return found
