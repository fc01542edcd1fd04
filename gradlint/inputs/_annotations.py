"""Evidence from annotations, defaults and names, and from what docstrings and comments say: types
in words, shapes such as ``x: (B, C, N)``."""

from __future__ import annotations

import enum
import inspect
import re
import sys
from typing import Any, get_args

from gradlint.inputs import _names
from gradlint.inputs._evidence import MISSING, Evidence
from gradlint.inputs.described import (
    ANY,
    Described,
    arguments_in,
    axes_in_words,
    jaxtyped,
    shape_before_arrow,
    shape_of_all,
    shapes_in_order,
)
from gradlint.inputs.documentation import (
    as_written,
    denies_symmetry,
    described,
    documented_ball,
    documented_binary,
    documented_binary_labels,
    documented_definite_input,
    documented_dtype,
    documented_interval,
    documented_interval_of_input,
    documented_numbers,
    documented_rotation,
    documented_scalar,
    documented_sign,
    documented_signs,
    documented_unit,
    documented_zero_dim,
    names_axis,
    shapes_in,
    starred_rank,
)
from gradlint.inputs.domains import WEAK, of_quantity, worded
from gradlint.inputs.unlike import documented_unlike, named_unlike
from gradlint.model.sample import has_fields

#: An axis of a shape without brackets, as in "q: B H L D" or "image: B x C x H x W".
_LETTER = r"[A-Z](?:_?[a-z0-9]{1,3})?(?![\w])"
#: Words for integers beside a parameter's name.
_INTEGERS = r"(?:ints?|integers?|integer (?:indices|tensor)|indices|long tensor|int64)\b"
_LIST_OF_INTEGERS = (
    r"(?:an?\s+|the\s+)?(?:python\s+)?(?:lists?|tuples?|sequences?) of (?:ints?|integers?)\b"
)
#: Names of types in an annotation → the kind of argument that they mean.
_KIND_OF_TYPE = (
    (r"LongTensor|IntTensor|Int(64|32|eger)?\[", "index"),
    (r"BoolTensor|ByteTensor|Bool\[", "mask"),
    (r"Complex\w*\[", "complex"),
    (r"(?<!Long)(?<!Int)(?<!Bool)(?<!Byte)Tensor\b|\bParameter\b|\bVariable\b", "any"),
    (r"\bbool\b", "bool"),
    (r"\bint\b|SymInt", "int"),
    (r"\bfloat\b|\bNumber\b|\bScalar\b", "float"),
    (r"\bstr\b", "str"),
    (r"\b[Tt]uple\b|\bSize\b", "shape"),
    (r"Callable", "callable"),
    (r"\bModule\b", "module"),
    (r"\bdtype\b", "dtype"),
    (r"\bdevice\b", "device"),
    (r"ProcessGroup|Generator", "none"),
)
#: A sequence of tuples of tensors that are named: "list of (W, b) pairs".
_OF_PAIRS = (
    r"(?:an?\s+|the\s+)?(?:list|tuple|sequence)s?\s+of\s+(?:\w+\s+)?"
    r"\((\w+(?:\s*,\s*\w+)+)\)\s+(?:pairs|tuples|triples)\b"
)
#: Weight of an annotation: large, but authors annotate `float` and pass tensors.
_ANNOTATED = 6.0
#: Weight of what a docstring or comment says.
_DESCRIBED = 2.5
#: That of words which say that a tensor has no dimensions: as much as that of an annotation.
_SCALAR = 4.5
#: That of the number of axes of a second form, ``(N,) or (N, K)``.
_SECOND = 1.0
#: That of a shape: what has one is a tensor, and no list of them.
_SHAPED = 2.0
#: Levels of classes within classes whose fields are read: they may name one another in a circle.
_MOST_LEVELS = 3
#: Words said of a tensor → the kind of argument that they mean.
_KIND_IN_WORDS = (
    ("complex", r"\bcomplex\b"),
    ("mask", r"\bbool(?:ean)?\b.*\b(?:mask|tensor)\b"),
)
#: Domains that an inequality of the documentation gives.
_SIGNED = {"": "", "positive": "positive", "nonnegative": "nonnegative"}


def read_annotation(evidence: Evidence, annotation: Any) -> None:
    """Add what ``annotation`` (an object or its text) says."""
    if annotation is inspect.Parameter.empty or annotation is None:
        return
    if isinstance(annotation, type) and issubclass(annotation, enum.Enum):
        for member in annotation:
            evidence.suggest(member)
        evidence.say("value", _ANNOTATED)
        return
    axes = getattr(annotation, "dim_str", None)
    if isinstance(axes, str):
        evidence.shape = axes_in_words(axes)
    text = annotation if isinstance(annotation, str) else _text(annotation)
    evidence.shape = evidence.shape or jaxtyped(text)
    read_annotation_text(evidence, text)
    named = _class_or_none(annotation)
    if isinstance(named, type) and named.__module__ not in ("builtins", "torch"):
        evidence.classes.append(named)
        if has_fields(named):
            evidence.weights = {"value": 2 * _ANNOTATED}
            evidence.fields = _fields(evidence, named)


def _class_or_none(annotation: Any) -> Any:
    """The class with fields in ``Optional[Class]``; other annotations as they are."""
    named = [part for part in get_args(annotation) if part is not type(None)]
    alone = len(named) == 1 and type(None) in get_args(annotation)
    return named[0] if alone and isinstance(named[0], type) and has_fields(named[0]) else annotation


def _fields(evidence: Evidence, made: type) -> dict[str, Evidence]:
    """What the annotations and names of the fields of ``made`` say."""
    found: dict[str, Evidence] = {}
    if evidence.name.count(".") >= _MOST_LEVELS:
        return found
    for field in inspect.signature(made).parameters.values():
        default = MISSING if field.default is inspect.Parameter.empty else field.default
        own = found[field.name] = Evidence(f"{evidence.name}.{field.name}", default=default)
        read_annotation(own, _looked_up(field.annotation, made))
        named = Evidence(field.name)
        read_name(named)
        if len(field.name) == 1 and own.weights:
            named.weights = {}  # a quantity, as in the formulas: `i` is a current
        own.weights = {**named.weights, **own.weights}
        own.ranks = named.ranks
        own.domain = _names.square_domain(field.name) or _names.domain(field.name)
    return found


def _looked_up(annotation: Any, owner: type) -> Any:
    """An annotation of a field of ``owner``: where its text names a class with fields in the same
    module, that class."""
    text = getattr(annotation, "__forward_arg__", annotation)
    if not isinstance(text, str):
        return annotation
    named = vars(sys.modules.get(owner.__module__, object)).get(text)
    known = isinstance(named, type) and has_fields(named) and named is not owner
    return named if known else text


def _text(annotation: Any) -> str:
    try:
        return inspect.formatannotation(annotation)
    except Exception:
        return ""


def read_annotation_text(evidence: Evidence, text: str, weight: float = _ANNOTATED) -> None:
    """Add what the text of an annotation says, e.g. ``Optional[torch.Tensor]``."""
    if not text:
        return
    literal = re.search(r"Literal\[([^\]]*)\]", text)
    if literal:
        for value in re.findall(r"'([^']*)'|\"([^\"]*)\"", literal.group(1)):
            evidence.suggest(value[0] or value[1])
        evidence.say("str", weight)
        return
    if re.search(r"Optional|\bNone\b", text):
        evidence.optional = True
    sequence = re.search(r"(?i)\b(list|sequence|tuple|iterable|collection)\b\s*\[([^\]]*)\]", text)
    if sequence and re.search(r"Tensor|Parameter|Variable", sequence.group(2)):
        evidence.say("tensors", weight)
        _read_length(evidence, sequence)
        return
    if re.search(r"(?i)\bdict\b|Mapping", text):
        evidence.say("dict", weight)
        evidence.of_tensors = "Tensor" in text
        return
    if sequence and re.search(r"\bint\b", sequence.group(2)):
        evidence.say("shape", weight if not re.search(r"Union|\|", text) else weight - 1)
        _read_length(evidence, sequence)
    elif sequence and re.search(r"\bfloat\b", sequence.group(2)):
        evidence.say("floats", weight if not re.search(r"Union|\|", text) else weight - 1)
        _read_length(evidence, sequence)
    _read_plain_types(evidence, text, sequence, weight)


def _read_length(evidence: Evidence, sequence: re.Match[str]) -> None:
    """``Tuple[int, int]`` has two elements; ``Tuple[int, ...]`` and ``List[int]`` do not say."""
    parts = [part for part in sequence.group(2).split(",") if part.strip()]
    if sequence.group(1).lower() == "tuple" and "..." not in sequence.group(2):
        evidence.length = len(parts)


def _read_plain_types(
    evidence: Evidence, text: str, sequence: re.Match[str] | None, weight: float
) -> None:
    """The types named outside of ``sequence``; each one after the first counts for less."""
    plain = text.replace(sequence.group(0), "") if sequence else text
    found = 0
    for pattern, kind in _KIND_OF_TYPE:
        if kind == "any" and {"index", "mask", "complex"} & set(evidence.weights) and found:
            continue
        if kind == "shape" and sequence:
            continue
        if re.search(pattern, plain):
            evidence.say(kind, weight - 0.6 * found)
            found += 1


def read_default(evidence: Evidence) -> None:
    """Add what the default says: its type, and whether None is allowed."""
    default = evidence.default
    if default is MISSING:
        return
    if default is None:
        evidence.optional = True
        return
    if isinstance(default, type):  # one of its instances may be meant
        evidence.classes.append(default)
        evidence.say("value", 3.0)
    for kind, types in (
        ("bool", bool),
        ("int", int),
        ("float", float),
        ("str", str),
        ("shape", tuple),
        ("dict", dict),
    ):
        if isinstance(default, types):
            evidence.say(kind, 5.0)
            break
    else:
        evidence.say("callable" if callable(default) else "value", 4.0)
    evidence.suggest(default, first=True)


def read_name(evidence: Evidence) -> None:
    """Add what the name says."""
    for kind, weight in _names.kinds(evidence.name).items():
        evidence.say(kind, weight)
    evidence.unlike = evidence.unlike or named_unlike(evidence.name)
    for rank, weight in _names.rank_weights(evidence.name).items():
        evidence.rank(rank, weight)


def read_docs(
    things: list[Any], parameters: list[Evidence], *, by_name_alone: bool = False
) -> None:
    """Add what the docstrings and comments of ``things`` (functions, classes) say; by
    ``by_name_alone`` nothing that does not name a parameter."""
    text = "\n".join(described(thing) for thing in things if thing is not None)
    if text:
        read_text(text, parameters, by_name_alone=by_name_alone)


def read_text(text: str, parameters: list[Evidence], *, by_name_alone: bool = False) -> None:
    """Add what a text says of ``parameters``, as :func:`read_docs` does."""
    names = [evidence.name for evidence in parameters]
    said = arguments_in(text, names)
    for evidence in parameters:
        evidence.mentioned += worded(text)
        item = said.get(evidence.name, Described())
        # All else is said beside its name; looking for it in many ways takes milliseconds.
        if item != Described() or re.search(rf"(?i){as_written(evidence.name, names)}", text):
            _read_described(evidence, item, text, names)
        elif not evidence.shape and documented_scalar(text, evidence.name, names):
            evidence.rank(0, _SCALAR)  # "x (N,), the others scalars"
    _give_one_shape(parameters, said)
    _give_any_axes(parameters, text)
    if not by_name_alone:
        _read_without_names(text, parameters)


def _read_without_names(text: str, parameters: list[Evidence]) -> None:
    """Add what ``text`` says of parameters without naming them: of the only tensor, of all, or of
    several in order."""
    labels = documented_binary_labels(text, [evidence.name for evidence in parameters])
    for evidence in parameters:
        if evidence.name == labels and not evidence.domain:
            evidence.domain = "binary"
    only = [item for item in parameters if item.tensorness > 0 and item.is_likely_tensor]
    if len(only) == 1 and not only[0].domain:
        definite = documented_definite_input(text)
        only[0].domain = "spd" if definite else documented_interval_of_input(text)
    if len(only) == 1 and not only[0].shape:
        only[0].shape = shape_before_arrow(text)
    tensors = [item for item in parameters if item.required and item.is_likely_tensor]
    of_all = shape_of_all(text)
    for evidence in tensors if of_all else ():
        evidence.shape = evidence.shape or of_all
    if any(evidence.shape for evidence in parameters):
        return
    for evidence, shape in zip(tensors, shapes_in_order(text, len(tensors)), strict=False):
        evidence.shape = shape
    shapes = shapes_in(text)
    if shapes and parameters and not any(evidence.shape for evidence in parameters):
        # "Smooths (B, T, C)": of no parameter by name, so of the first.
        parameters[0].rank(len(shapes[0]), _DESCRIBED)
    elif parameters and (rank := starred_rank(text)):
        parameters[0].rank(rank, _SECOND)


def _is_rotation(evidence: Evidence, text: str) -> bool:
    """Whether ``text`` calls a square matrix a rotation."""
    square = len(evidence.shape) >= 2 and evidence.shape[-1] == evidence.shape[-2]
    return square and documented_rotation(text, evidence.name)


#: Words on one argument: "scale (C, 1) and integer zero point" says nothing of the scale, nor
#: "logits at integer positions" of the logits.
_UP_TO_THE_NEXT = r"(?:(?!\b(?:and|with|beside|at|per|by)\b)[^.;\n]){0,24}?"


def _read_described(evidence: Evidence, item: Described, text: str, names: list[str]) -> None:
    """Add what ``text``, and ``item`` of it, say of a parameter."""
    name = re.escape(evidence.name)
    typed = re.search(
        rf"(?m)^\W*{name}\s*(?:\(([^()\n]*(?:\([^()]*\))?[^()\n]*)\)|:([^\n]*))", text
    )
    if typed:
        words = typed.group(1) or typed.group(2) or ""
        read_annotation_text(evidence, words, _DESCRIBED)
    if not evidence.shape:
        evidence.shape = (item.axes if set(item.axes) - ANY else ()) or _bare_shape(name, text)
    if item.other:
        evidence.rank(len(item.other), _SECOND)
    if item.axes:
        evidence.say("any", _SHAPED)
    if documented_zero_dim(text, evidence.name, names):
        evidence.shape = ()
    if not evidence.shape and documented_scalar(text, evidence.name, names):
        evidence.rank(0, _SCALAR)
    if not evidence.domain or evidence.domain in WEAK:
        evidence.domain = (
            next(iter(worded(item.words)), "")
            or ("orthogonal" if _is_rotation(evidence, text) else "")
            or ("lengths" if documented_unit(text, evidence.name) else "")
            or ("ball" if documented_ball(text, evidence.name, names) else "")
            or ("signs" if documented_signs(text, evidence.name, names) else "")
            or ("binary" if documented_binary(text, evidence.name, names) else "")
            or documented_interval(text, evidence.name, names)
            or _SIGNED[documented_sign(text, evidence.name, names)]
            or ("" if evidence.signed else of_quantity(item.words))
            or evidence.domain
        )
    evidence.general = denies_symmetry(text, evidence.name)
    evidence.unlike = evidence.unlike or documented_unlike(text, evidence.name, names)
    if evidence.unlike == "elements" and not evidence.shape:
        evidence.rank(1, _SECOND)  # a set
    if not item.axes and not evidence.shape and names_axis(text, evidence.name):
        evidence.say("int", _ANNOTATED)
    _read_pairs(evidence, text)
    _read_integers(evidence, text, names)
    _read_kind(evidence, item)


def _read_pairs(evidence: Evidence, text: str) -> None:
    """``factors: list of (A, G) pairs`` holds pairs of tensors, and the brackets are no shape."""
    name = re.escape(evidence.name)
    found = re.search(rf"(?i)(?<![\w.]){name}`*\s*(?::|is|are)\s*{_OF_PAIRS}", text)
    if found:
        evidence.say("tensors", _ANNOTATED)
        evidence.members = tuple(re.findall(r"\w+", found[1]))
        evidence.shape = ()


def _read_integers(evidence: Evidence, text: str, names: list[str]) -> None:
    """Whether ``text`` says that a parameter holds integers, truth values, or plain numbers."""
    name = re.escape(evidence.name)
    if dtype := documented_dtype(text, evidence.name, names):
        evidence.say(dtype, _ANNOTATED)
    if re.search(rf"(?i)\b{name}`*\s+(?:is|are|as)\s+{_LIST_OF_INTEGERS}", text):
        evidence.say("shape", _ANNOTATED)
    elif re.search(rf"(?i)\b{name}\b{_UP_TO_THE_NEXT}\b{_INTEGERS}", text):
        evidence.say("index", _DESCRIBED)
    elif not evidence.shape and documented_numbers(text, evidence.name, names):
        evidence.say("floats", _DESCRIBED)


def _read_kind(evidence: Evidence, item: Described) -> None:
    if item.axes and re.search(r"\b(?:integer|integral|int\d+|long)\s+_", item.words):
        evidence.say("index", _DESCRIBED)
    for kind, pattern in _KIND_IN_WORDS:
        if re.search(pattern, item.words):
            evidence.say(kind, _DESCRIBED)


def _bare_shape(name: str, text: str) -> tuple[str, ...]:
    bare = re.search(
        rf"(?<![\w.]){name}`*\s*:\s*({_LETTER}(?:(?:\s+|\s?[x×]\s?){_LETTER}){{0,5}})\s*(?:[,;.\n]|$)",
        text,
    )
    return tuple(re.split(r"\s?[x×]\s?|\s+", bare.group(1))) if bare else ()


def _give_any_axes(parameters: list[Evidence], text: str) -> None:
    """``obs: (...)`` has the axes that are any number beside others elsewhere, ``ens: (M, ...)``;
    alone, it says nothing."""
    beside = {axis for item in parameters for axis in item.shape} & ANY
    for evidence in parameters if len(beside) == 1 else ():
        bare = rf"(?<![\w.]){re.escape(evidence.name)}`*\s*:?\s*[\[(]\s*(?:\.\.\.|\*)\s*[\])]"
        if not evidence.shape and re.search(bare, text):
            evidence.shape = tuple(beside)


def _give_one_shape(parameters: list[Evidence], said: dict[str, Described]) -> None:
    """One shape for arguments of which one is said: that of the one that has one, or new axes where
    it is not said which."""
    for evidence in parameters:
        group = said.get(evidence.name, Described()).like
        others = [item for item in parameters if item.name in group]
        known = next((item.shape for item in others if item.shape), ())
        if not known and (not others or evidence is not others[0]):
            continue
        rank = max(evidence.ranks, key=evidence.ranks.__getitem__) if evidence.ranks else 2
        shape = known or tuple(f"{evidence.name}.{axis}" for axis in range(rank))
        for item in others:
            item.shape = item.shape or shape
