"""Whether an argument for which backward returns None was meant to have a gradient: what the
source says of it.

Where inputs are inferred, None may stand for a constant or for a gradient that was forgotten. The
output depends on the argument in both cases; only what the author wrote tells them apart.
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

from gradlint.inputs.documentation import prose
from gradlint.targets.nodes import source_text
from gradlint.targets.source_file import bindings, dotted, read_source

#: Names that say little beside others, in front of the name of the input that a gradient is for.
_PREFIX = re.compile(r"^(?:grad|d|g)_?(?=\w)|_?grad$")

#: What a tensor is asked for that carries no gradient.
_SIZES = frozenset({"shape", "size", "dim", "ndim", "numel", "dtype", "device", "stride", "layout"})

#: In a sentence that names an argument: it is a constant.
_CONSTANT = re.compile(
    r"\bconstants?\b|\bno grad|\bnot (?:be )?differentia|\bnon-?differentia|\bwithout (?:a )?grad"
    r"|\bnot (?:train|optimi)|\bfrozen\b|\bfixed\b|\bbuffers?\b|\bdetach|\bstop[- ]?grad"
    r"|\bnot? need"
)

#: Begins the list of the arguments that have a gradient.
_GRADIENTS_OF = re.compile(
    r"(?<!non-)(?:[Dd]ifferentia(?:ble|ted)|\b[Gg]radients?(?: (?:flows?|is|are|given|computed))?)"
    r"\s+(?:in|for|to|wrt|w\.r\.t\.?|with respect to)\s+"
)
_LISTED = re.compile(r"\s*(?:(?:both|all|the|of|its)\s+)*[`*]*(\w+)[`*]*\s*(,?\s*and\b|,|&|/)?")
#: Characters of the entry of an argument within which it may be called learned.
_ENTRY = 80
_LEARNED = r"(?:learnable|learned|trainable|learnt)"

#: Names of the inputs of an operator and of its parameters by habit.
_INPUTS = frozenset({"x", "input", "inputs", "query", "key", "value", "bias"})
_ATTENTION = frozenset("qkv")
_INPUT = re.compile(r"\w+_bias|(?:log|raw)_(?!prob|[pq]\b|[pq]_)\w+")

#: Words in the names of arguments that stand still while others are trained.
_STILL = frozenset(
    {"old", "ref", "reference", "prev", "previous", "init", "initial", "base", "target"}
    | {"teacher", "frozen", "fixed", "const", "behavior", "ema"}
)

#: Names of arguments of losses, whose weights are constants by habit.
_OF_LOSSES = re.compile(r"target|label|mask|ignore|reduction|^gt$|pred|logit|prob")
#: Names of what a loss compares with; a mask or logits have others than losses, too.
_TARGET = re.compile(r"targets?|labels?|gt|ground_?truth")

#: Most tensors of an operator whose ``weight`` counts as one of its parameters: where there are
#: more, it is often frozen and others are trained in its place (heuristic, from low-rank adapters).
_FEW = 3


def why_meant(function: type, names: Sequence[str], position: int, returned: Sequence[bool]) -> str:
    """Why the argument is meant to have a gradient, in words; empty where nothing says so, or
    where it is said to be a constant.

    Args:
        function: the ``torch.autograd.Function``.
        names: of forward's arguments.
        position: of the argument among them.
        returned: for every argument, whether backward returned a gradient for it.
    """
    name = names[position]
    said = said_of(function, name, names)
    if said is False:
        return ""
    backward = method_of(function, "backward")
    with_gradient = [n for n, has in zip(names, returned, strict=False) if has]
    return (
        (_computed(backward, name, names) if backward is not None else "")
        or (f"the documentation says that `{name}` has one" if said else "")
        or _passed_parameter(function, name, position)
        or _alike(name, with_gradient)
        or _by_name(name, names)
    )


# What backward computes.


@lru_cache(maxsize=64)
def method_of(function: type, name: str) -> ast.FunctionDef | None:
    """The definition of a method of ``function``; None where its source can't be read."""
    try:
        tree = ast.parse(textwrap.dedent(source_text(function)))
    except Exception:  # without source, or with one that does not parse: nothing is known
        return None
    found = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
    return next((node for node in found if node.name == name), None)


def _computed(backward: ast.FunctionDef, name: str, names: Sequence[str]) -> str:
    """A value that is never used and depends on the incoming gradients, or on anything, where it is
    called the gradient of ``name``: it was to be returned."""
    read = _read(backward)
    ctx, *incoming = [item.arg for item in (*backward.args.posonlyargs, *backward.args.args)]
    if backward.args.vararg is not None:
        incoming.append(backward.args.vararg.arg)
    unused = [local for local in _depending(backward, incoming) if local not in read]
    named = [local for local in _depending(backward, [ctx, *incoming]) if _PREFIX.search(local)]
    for local in dict.fromkeys([*unused, *(local for local in named if local not in read)]):
        rest = _PREFIX.sub("", local).strip("_") or local
        meant = [n for n in names if n.strip("_") == rest] or [
            n for n in names if n.startswith(rest) or (len(rest) > 1 and rest in n)
        ]
        if name in meant or (not meant and unused == [local]):
            return f"backward computes `{local}` and never uses it"
    return ""


def _depending(backward: ast.FunctionDef, arguments: Sequence[str]) -> list[str]:
    """Local names whose values depend on ``arguments`` of backward, sizes aside."""
    known, found = set(arguments), []
    stored = [pair for statement in bindings(backward.body) for pair in _stored(statement)]
    for local, value in [*stored, *stored]:  # what a loop computes is used in its next turn
        if known.isdisjoint(_values_in(value)):
            continue
        known.add(local)
        if local not in arguments and not local.startswith("_"):
            found.append(local)
    return list(dict.fromkeys(found))


def _values_in(node: ast.AST) -> Iterator[str]:
    """Names in an expression, but not those that are only asked for their sizes and the like."""
    if isinstance(node, ast.Attribute) and node.attr in _SIZES:
        return
    if isinstance(node, ast.Name):
        yield node.id
    for child in ast.iter_child_nodes(node):
        yield from _values_in(child)


#: Methods of lists that add what they are given.
_ADDING = frozenset({"append", "insert", "extend"})


def _stored(statement: ast.stmt) -> Iterator[tuple[str, ast.expr]]:
    """The names that a statement binds or changes in place, each with the expression that it gets
    its value from."""
    value = getattr(statement, "iter", None) or getattr(statement, "value", None)
    if not isinstance(value, ast.expr):
        return
    if isinstance(statement, ast.Expr):
        changed = _changed_by(value)
        if changed is not None and isinstance(value, ast.Call):
            yield from ((changed.id, argument) for argument in value.args)
        return
    one = [target for target in [getattr(statement, "target", None)] if target is not None]
    for target in statement.targets if isinstance(statement, ast.Assign) else one:
        pairs = [(target, value)]
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            pairs = list(zip(target.elts, value.elts, strict=False))
        for part, source in pairs:
            for node in ast.walk(part):
                changed = _written(node)
                if changed is not None:
                    yield changed.id, source
                elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                    yield node.id, source


def _read(backward: ast.FunctionDef) -> set[str]:
    """Names whose values are used for something else than to change them in place."""
    written = {id(node) for node in map(_written, ast.walk(backward)) if node is not None}
    return {
        node.id
        for node in ast.walk(backward)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and id(node) not in written
    }


def _written(node: ast.AST) -> ast.Name | None:
    """The name that a node changes in place: ``g`` of ``g[0] = 1``, ``g.add_(1)`` and
    ``g.append(1)``."""
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
        return node.value if isinstance(node.value, ast.Name) else None
    return _changed_by(node.value) if isinstance(node, ast.Expr) else None


def _changed_by(node: ast.expr) -> ast.Name | None:
    """The name that a call changes in place."""
    called = node.func if isinstance(node, ast.Call) else None
    if not isinstance(called, ast.Attribute) or not isinstance(called.value, ast.Name):
        return None
    return called.value if called.attr.endswith("_") or called.attr in _ADDING else None


# What is said in words.


def said_of(function: type, name: str, names: Sequence[str]) -> bool | None:
    """Whether docstrings and comments say that the argument has a gradient; None: nothing."""
    text = prose(function)
    text = re.sub(r"(?<!\n)\n(?!\n)", " ", text)
    meant: bool | None = None
    listed: set[str] = set()
    for sentence in re.split(r"[.;](?=\s|$)|\n\n", text):
        if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", sentence):
            if _CONSTANT.search(sentence.lower()):
                return False
            meant = meant or _is_learned(sentence, name)
        for start in _GRADIENTS_OF.finditer(sentence):
            listed |= set(_list_from(sentence[start.end() :])) & set(names)
    if listed:
        return name in listed
    return meant


def _is_learned(sentence: str, name: str) -> bool | None:
    name = re.escape(name)
    pattern = (
        rf"\b{_LEARNED}\s+(?:[\w-]+\s+){{0,2}}`*{name}(?!\w)"
        rf"|(?<!\w){name}`*(?:\s*\([^)]*\))?\s+(?:is|are)\s+(?:an?\s+)?{_LEARNED}"
        rf"|(?<!\w){name}`*\s*:[^:;.]{{0,{_ENTRY}}}?(?<![\w-])(?:{_LEARNED}|optimi[sz]ed)\b"
    )
    return True if re.search(pattern, sentence) else None


def _list_from(text: str) -> Iterator[str]:
    """The words of a list such as "x, mu and L"."""
    while found := _LISTED.match(text):
        yield found.group(1)
        if not found.group(2):
            return
        text = text[found.end() :]


# What is known of the argument from elsewhere.


def _passed_parameter(function: type, name: str, position: int) -> str:
    """The module of the same file that passes one of its parameters for the argument."""
    tree = _file(function)
    for module in tree.body if tree is not None else ():
        if not isinstance(module, ast.ClassDef):
            continue
        for call in (node for node in ast.walk(module) if isinstance(node, ast.Call)):
            owner, _, method = dotted(call.func).rpartition(".")
            if method != "apply" or owner.rpartition(".")[2] != function.__name__:
                continue
            given = call.args[position] if position < len(call.args) else None
            own = dotted(given) if given is not None else ""
            if own.startswith("self.") and own[5:] in _parameters(module):
                return f"`{module.name}` passes its parameter `{own[5:]}` for `{name}`"
    return ""


def _file(function: type) -> ast.Module | None:
    try:
        source = read_source(inspect.getfile(function))
    except (OSError, TypeError):
        return None
    return source.tree if source is not None else None


def _parameters(module: ast.ClassDef) -> set[str]:
    """Attributes of ``self`` that a class sets to trainable parameters."""
    found = set()
    for node in ast.walk(module):
        value: Any = getattr(node, "value", None)
        if not isinstance(node, (ast.Assign, ast.AnnAssign)) or not isinstance(value, ast.Call):
            continue
        frozen = any(k.arg == "requires_grad" for k in value.keywords)
        if dotted(value.func).rpartition(".")[2] != "Parameter" or frozen:
            continue
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            if dotted(target).startswith("self."):
                found.add(dotted(target)[5:])
    return found


def _alike(name: str, with_gradient: Sequence[str]) -> str:
    """Two arguments that have gradients, and between which ``name`` stands by its words: one has
    the same stem, the other the same ending, as ``mu_q`` and ``logvar_p`` beside ``mu_p``."""
    words = _words(name)
    for one in with_gradient:
        others = _words(one)
        differing = [(w, o) for w, o in zip(words, others, strict=False) if w != o]
        if len(words) != len(others) or len(words) < 2 or len(differing) != 1:
            continue
        for other in with_gradient:
            if other != one and differing[0][0] in _words(other):
                return f"`{one}` and `{other}` have gradients"
    return ""


def _words(name: str) -> list[str]:
    return [word for word in re.split(r"_|(?<=[a-z])(?=\d)", name.lower()) if word]


def is_of_loss(names: Sequence[str]) -> bool:
    """Whether arguments of these names are those of a loss: one of them is a target."""
    return any(_TARGET.fullmatch(name.lower()) for name in names)


def _by_name(name: str, names: Sequence[str]) -> str:
    """Whether an operator that is no loss has an input or a parameter of this name."""
    others = [other for other in names if other != name]
    if any(_OF_LOSSES.search(other) for other in others) or _STILL & set(_words(name)):
        return ""
    known = name.lower() in _INPUTS or _INPUT.fullmatch(name.lower()) is not None
    attention = name in _ATTENTION and {n.lower() for n in names} >= _ATTENTION
    weight = name.lower() in ("weight", "w") and len(names) <= _FEW
    return f"`{name}` is by its name an input or a parameter" if known | attention | weight else ""
