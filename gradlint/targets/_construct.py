"""Constructs an ``nn.Module`` class: with arguments that are given, or that are guessed."""

from __future__ import annotations

import ast
import collections.abc
import enum
import inspect
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from inspect import Parameter
from types import SimpleNamespace
from typing import Any, Literal, get_args, get_origin, get_type_hints

import torch
from torch.overrides import TorchFunctionMode

from gradlint.base.text import error_line
from gradlint.numerics.seeds import PARAMETERS, mixed
from gradlint.targets._kept_modules import Kept, kept_modules
from gradlint.targets._kept_tensors import kept_tensors, sizes_of_tensors
from gradlint.targets._sequence_arguments import sequence_lengths
from gradlint.targets._tensor_arguments import TensorForm, made, size_named, tensor_forms
from gradlint.targets.calls import call_hints
from gradlint.targets.example_calls import example_calls
from gradlint.targets.load_error import LoadError, load_error, short_repr
from gradlint.targets.nodes import class_node
from gradlint.targets.signature import signature_of
from gradlint.targets.source_file import dotted

#: Values of size-like arguments, in order of trial: distinct ones first, so that a
#: transposition can't hide; equal ones for modules that tie their arguments (heuristic).
_SIZES: tuple[tuple[int, ...], ...] = ((4, 3, 6, 5, 7), (4,), (8,), (6, 2, 3), (16,), (2,), (1,))

#: Seed of the initial values of every module that is constructed here.
_SEED = mixed(0, PARAMETERS)

#: Sizes above this, from calls elsewhere, are tried last: gradients are judged on small tensors.
_LARGEST = 32

#: Modules whose classes say nothing of an object to make: plain types, no annotation at all.
_NO_OBJECTS = frozenset({"builtins", "inspect", "typing", "collections.abc", "types"})

_AXIS = ("axis", "dim", "dims")

#: PyTorch's words where a parameter is made of integers.
_NEEDS_FLOATS = "floating point and complex dtype can require gradients"

#: Words of Python and PyTorch where an integer is used as a sequence.
_NEEDS_SEQUENCE = (
    r"'int' object is not (iterable|subscriptable)|must be an iterable, not int|"
    r"'int' has no len|an iterable, but got int"
)
#: Words where an integer, or a list of them, is used as a module, or as modules.
_NEEDS_MODULE = (
    r"int is not a Module subclass|'int' object is not callable|"
    r"'int' object has no attribute '(parameters|named_parameters|modules|children|weight)'"
)

#: Words of PyTorch where something else than an integer is used as a size.
_NEEDS_SIZE = re.compile(
    r"received an invalid combination of arguments - got \(.*\b(?:str|float)\b"
    r"|must be (?:tuple of ints|int), ?(?:but found element of type|but got|not) (?:str|float)\b"
)

#: Guesses after which errors lead to no further ones (heuristic: three kinds of two arguments).
_MOST_TRIED = 24

#: Parts of names and the value they suggest; the first that matches is taken (heuristic).
_BY_NAME: tuple[tuple[str, Any], ...] = (
    (r"^(n_?|num_?)?(heads?|groups?|experts?)$|^nhead$", 2),
    (r"kernel|^k(size|_size)?$|window", 3),
    (r"^(padding|pad)$", 1),
    (r"stride|dilation|^(n_|num_)?(layers?|blocks?|repeats?)$|^depth$|^order$|^iters?$", 1),
    (r"scale_factor|upscale|ratio|expansion|multiplier", 2),
    (r"^p$|prob|drop|_rate$", 0.25),
    (r"^eps|epsilon$", 1e-5),
    (r"momentum", 0.1),
    (r"^min|_min$|min_val|^low", -1.0),
    (r"^max_?(val|value)?$|_max$|^high", 1.0),
    (r"^(alpha|beta|gamma|slope|lambd?a?|threshold|thresh|temperature|temp|tau|scale|margin"
     r"|sigma|smoothing|weight_decay|negative_slope|delta|init_value|value|power|vth|v_th)$", 0.5),
    (r"^(bias|affine|training|inplace|batch_first|causal|elementwise_affine)$|^(use|with|is|has)_",
     True),
    (r"max_?(len|length)|seq_?len|context|block_size", 16),
    (r"vocab|num_embeddings|n_tokens", 10),
    (r"classes|n_?class", 5),
    (r"^bits?$|n_?bits|bit_?width", 8),
    (r"reduction|reduce(?!d)", "mean"),
    (r"(^|_)mode$", "nearest"),
    (r"^device$", "cpu"),
)  # fmt: skip


def construct(cls: type[torch.nn.Module]) -> tuple[torch.nn.Module, dict[str, Any]]:
    """An instance of a module class, and the constructor arguments that were chosen for it.

    Only required arguments are given: values are taken from calls of the class in its own package,
    then guessed from annotations and names. Random initial values are the same at every call.

    Raises:
        LoadError: the constructor raised for everything that was tried.
    """
    required = _required(cls)
    state = torch.get_rng_state()
    try:
        if not required:
            torch.manual_seed(_SEED)
            try:
                with _FilledMemory():
                    return cls(), {}
            except TypeError as error:
                # `__init__(self, *args)` that calls one with named arguments: its error names them.
                required = _missing_names(error)
                if not required:
                    raise load_error(f"constructing `{cls.__name__}()`", error) from error
            except BaseException as error:
                raise load_error(f"constructing `{cls.__name__}()`", error) from error
        tried: list[dict[str, Any]] = []
        failures: list[BaseException] = []
        empty: tuple[torch.nn.Module, dict[str, Any]] | None = None
        for module, values in _made_by_guesses(cls, required, tried, failures):
            if not _has_empty(module):
                return module, values
            empty = empty or (module, values)
        if empty is not None:
            return empty
        failure = failures[-1] if failures else None
        raise _not_constructible(cls, required, tried, failure)
    finally:
        torch.set_rng_state(state)


def other_constructions(
    cls: type[torch.nn.Module], but: Mapping[str, Any]
) -> Iterator[tuple[torch.nn.Module, dict[str, Any]]]:
    """Further instances of a module class, with the arguments that were guessed for each: those
    that :func:`construct` would have tried, had it been refused those that it chose.

    Args:
        but: the arguments that were chosen.
    """
    state = torch.get_rng_state()
    try:
        required = [item for item in _required(cls) if item.name in but]
        if len(required) == len(but):
            yield from _made_by_guesses(cls, required, [dict(but)], [])
    finally:
        torch.set_rng_state(state)


def _made_by_guesses(
    cls: type[torch.nn.Module],
    required: list[Parameter],
    tried: list[dict[str, Any]],
    failures: list[BaseException],
) -> Iterator[tuple[torch.nn.Module, dict[str, Any]]]:
    """Instances of ``cls`` with guesses for the required arguments. What was tried is added to
    ``tried``, which is not tried again, and what was raised to ``failures``."""
    candidates = collections.deque[dict[str, Any]]()
    guesses = _candidates(cls, required)
    while candidates or (candidates := collections.deque(itertools.islice(guesses, 1))):
        values = candidates.popleft()
        if any(_alike(values, other) for other in tried):
            continue
        tried.append(values)
        torch.manual_seed(_SEED)
        try:
            with _FilledMemory():
                module = cls(**values)
        except BaseException as error:
            failures.append(error)
            if len(tried) < _MOST_TRIED:
                candidates.extend(_mended(values, error))
            continue
        if not _axis_is_size(module, values):
            yield module, values


def _mended(values: dict[str, Any], error: BaseException) -> Iterator[dict[str, Any]]:
    """Guesses in place of ``values``, as ``error`` says what these lack: one argument becomes
    another kind of thing. Which one, the error does not say."""
    words = str(error)
    if _NEEDS_FLOATS in words:
        floating = {name: _floating(item) for name, item in values.items()}
        if repr(floating) != repr(values):
            yield floating
            yield {
                name: [item, item + 0.5, item + 1.5] if type(item) is float else item
                for name, item in floating.items()
            }
    for name, value in values.items():
        if type(value) in (str, float) and _NEEDS_SIZE.search(words):
            taken = [other for other in values.values() if type(other) is int]
            yield values | {name: max(taken, default=1) + 1}
        elif type(value) is int and re.search(_NEEDS_SEQUENCE, words):
            yield values | {name: [value, value + 1]}
        elif type(value) in (int, list) and re.search(_NEEDS_MODULE, words):
            many = type(value) is list
            width = next(iter(value), 1) if many else value
            if type(width) is int:
                layers = [torch.nn.Linear(width, width) for _ in range(2)]
                yield values | {name: layers if many else layers[0]}


def construct_with(cls: type[torch.nn.Module], values: Mapping[str, Any]) -> torch.nn.Module:
    """An instance of a module class by arguments that are given. Random initial values are the
    same at every call.

    Raises:
        LoadError: the constructor raised.
    """
    state = torch.get_rng_state()
    try:
        torch.manual_seed(_SEED)
        with _FilledMemory():
            return cls(**values)
    except BaseException as error:
        raise load_error(f"constructing `{shown_call(cls, dict(values))}`", error) from error
    finally:
        torch.set_rng_state(state)


class _FilledMemory(TorchFunctionMode):
    """Memory without values gets some, always the same: a parameter that is made of it, and that
    only a checkpoint or the model around the module would fill, holds anything otherwise."""

    def __init__(self) -> None:
        super().__init__()
        self._generator = torch.Generator().manual_seed(_SEED)

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        made = func(*args, **(kwargs or {}))
        plain = func in _WITHOUT_VALUES and made.layout == torch.strided
        if plain and made.device.type == "cpu" and made.is_floating_point():
            values = torch.randn(made.shape, generator=self._generator, dtype=torch.float64)
            with torch.no_grad():
                made.copy_(_SPREAD * values)
        return made


#: Functions that give memory without values.
_WITHOUT_VALUES = (
    torch.empty,
    torch.empty_like,
    torch.empty_strided,
    torch.Tensor.new_empty,
    torch.Tensor.new_empty_strided,
)

#: Spread of the values put there (heuristic: that of a trained parameter, small beside one).
_SPREAD = 0.3


def _floating(value: Any) -> Any:
    """Numbers with a fraction in place of integers, also in tuples and lists."""
    if isinstance(value, (tuple, list)):
        parts = [(item, 0.25 * k) for k, item in enumerate(value)]
        return type(value)(item + 0.5 + k if type(item) is int else item for item, k in parts)
    return value + 0.5 if type(value) is int else value


def shown_call(cls: type, values: dict[str, Any]) -> str:
    """``Name(a=1, b=2)``."""
    inner = ", ".join(f"{name}={short_repr(value)}" for name, value in values.items())
    return f"{cls.__name__}({inner})"


def _required(cls: type) -> list[Parameter]:
    signature = signature_of(cls)
    return [
        parameter
        for parameter in (signature.parameters.values() if signature else ())
        if parameter.default is Parameter.empty
        and parameter.kind
        in (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY, Parameter.POSITIONAL_ONLY)
    ]


def _missing_names(error: TypeError) -> list[Parameter]:
    matched = re.search(r"missing \d+ required [\w-]+ arguments?: (.*)$", str(error))
    names = re.findall(r"'(\w+)'", matched[1]) if matched else []
    return [Parameter(name, Parameter.KEYWORD_ONLY) for name in names]


def _candidates(cls: type, required: list[Parameter]) -> Iterator[dict[str, Any]]:
    required = [item.replace(annotation=_resolved(cls, item)) for item in required]
    read = attributes_read(cls, [parameter.name for parameter in required])
    names = [parameter.name for parameter in required]
    calls = [
        {name: call[name].value for name in names}
        for call in call_hints(cls)
        if all(name in call and call[name].known for name in names)
    ]
    yield from filter(_small, calls)
    untyped = [item.name for item in required if item.annotation is Parameter.empty]
    forms = kept_tensors(cls, [name for name in untyped if name not in read])
    forms |= tensor_forms(
        cls, [item.name for item in required if _is_tensor(item.annotation) or item.name in forms]
    )
    modules = kept_modules(cls, untyped)
    counts = sizes_of_tensors(cls, untyped)
    lengths = sequence_lengths(cls, [name for name in untyped if name not in modules])
    for axis in (-1, None) if any(name in _AXIS for name in names) else (None,):
        for sizes in _SIZES:
            values: dict[str, Any] = {}
            used = 0
            for parameter in required:
                if axis is not None and parameter.name in _AXIS:
                    values[parameter.name] = axis
                    continue
                value = _guess(parameter, sizes[used % len(sizes)])
                if parameter.name in counts and isinstance(value, torch.nn.Module):
                    value = sizes[used % len(sizes)]
                if type(value) in (int, float, tuple) and parameter.name in lengths:
                    count = lengths[parameter.name]
                    values[parameter.name] = tuple(_cycled(sizes, used, count))
                    used += count
                    continue
                if parameter.name in modules and not callable(value):
                    value = _kept(modules[parameter.name], sizes[used % len(sizes)], value)
                elif parameter.name in read and not _has_all(value, read[parameter.name]):
                    value = _stand_in(read[parameter.name], sizes)
                used += value is sizes[used % len(sizes)]
                values[parameter.name] = value
            yield values | _tensors(forms, values, sizes)
    yield from calls
    yield from _written(cls, names)


def _written(cls: type, required: list[str]) -> Iterator[dict[str, Any]]:
    """The constructor's calls in docstrings and tests, optional arguments and all: of two of these
    one may be needed."""
    for texts in example_calls(cls):
        try:
            values = {name: ast.literal_eval(text) for name, text in texts.items()}
        except (ValueError, SyntaxError):
            continue
        if all(name in values for name in required):
            yield values


def _cycled(sizes: tuple[int, ...], start: int, count: int) -> Iterator[int]:
    """``count`` of ``sizes`` from ``start`` on, which begin again after the last."""
    return (sizes[(start + k) % len(sizes)] for k in range(count))


def _is_tensor(annotation: Any) -> bool:
    kinds = (annotation, *get_args(annotation))
    named = isinstance(annotation, str) and re.search(r"\bTensor\b", annotation) is not None
    return named or any(isinstance(kind, type) and issubclass(kind, torch.Tensor) for kind in kinds)


def _tensors(
    forms: dict[str, TensorForm], values: dict[str, Any], sizes: tuple[int, ...]
) -> dict[str, torch.Tensor]:
    """The tensors of known form. A size has the value of the argument of its name; others have
    values of their own. Indices point into the smallest."""
    known = {name: value for name, value in values.items() if type(value) is int and value > 1}
    given = list(known)
    for axis in (axis for form in forms.values() for axis in form.axes if not axis.isdigit()):
        if axis not in known:
            free = next((n for n in sizes if n not in known.values()), sizes[0])
            known[axis] = known.get(size_named(axis, given) or "", free)
    high = min(known.values(), default=sizes[0])
    return {name: made(form, known, high) for name, form in forms.items()}


def _small(values: dict[str, Any]) -> bool:
    return all(not isinstance(value, int) or abs(value) <= _LARGEST for value in values.values())


def _guess(parameter: Parameter, size: int) -> Any:
    annotation = parameter.annotation
    name = parameter.name.casefold()
    by_type = _by_annotation(annotation, size, name)
    if by_type is not NotImplemented:
        return by_type
    named = next((value for pattern, value in _BY_NAME if re.search(pattern, name)), NotImplemented)
    wanted = annotation if annotation in (int, float, bool, str) else None
    if wanted is not None and not (
        isinstance(named, wanted) or (wanted is float and isinstance(named, int))
    ):
        return {int: size, float: 0.5, bool: True, str: "mean"}[wanted]
    if wanted is bool or named is not NotImplemented:
        return named
    return _object(name, size)


def _by_annotation(annotation: Any, size: int, name: str) -> Any:
    """A value of the annotated type where the type says more than the name would."""
    origin, inner = get_origin(annotation), get_args(annotation)
    if isinstance(annotation, str):
        short = annotation.replace("typing.", "").replace(" ", "")
        known = {"int": int, "float": float, "bool": bool, "str": str}
        if short in known:
            return _guess(Parameter(name, Parameter.KEYWORD_ONLY, annotation=known[short]), size)
        return NotImplemented
    if origin is Literal:
        return inner[0]
    if origin in (*_COLLECTIONS, tuple) and _holds_modules(annotation):
        kinds = [item for item in inner if item is not Ellipsis]
        exact = origin is tuple and Ellipsis not in inner
        parts = [_by_annotation(item, size, name) for item in (kinds if exact else kinds[:1] * 2)]
        return tuple(parts) if origin is tuple else parts
    if origin in (collections.abc.Sequence, collections.abc.Iterable):
        return _floats(inner, list) or [size, size + 1]
    if origin in _COLLECTIONS and inner and get_origin(inner[0]) in (*_COLLECTIONS, tuple):
        # One in each, so that a flat list beside them, of two, has one for each of theirs.
        parts = [_by_annotation(inner[0], size + k, name) for k in range(2)]
        return [list(part)[:1] if type(part) is list else part for part in parts]
    if origin in (tuple, list) or annotation in (tuple, list):
        made: Callable[[Iterable[Any]], Any] = list if list in (origin, annotation) else tuple
        return _floats(inner, made) or made([size, size])
    if origin is not None and type(None) in inner:
        others = [item for item in inner if item is not type(None)]
        return _guess(Parameter(name, Parameter.KEYWORD_ONLY, annotation=others[0]), size)
    return _of_class(annotation, size) if isinstance(annotation, type) else NotImplemented


#: Types of which a list is one.
_COLLECTIONS = (list, collections.abc.Sequence, collections.abc.Iterable)


def _holds_modules(annotation: Any) -> bool:
    """Whether an annotation is of modules, or of a collection of them and nothing else."""
    kinds = [item for item in get_args(annotation) if item is not Ellipsis]
    if kinds:
        return get_origin(annotation) in (*_COLLECTIONS, tuple) and all(map(_holds_modules, kinds))
    return isinstance(annotation, type) and issubclass(annotation, torch.nn.Module)


def _floats(inner: tuple[Any, ...], made: Callable[[Iterable[Any]], Any]) -> Any:
    """Different numbers for ``tuple[float, float]`` and the like; None where others are wanted."""
    kinds = [kind for kind in inner if kind is not Ellipsis]
    if not kinds or any(kind is not float for kind in kinds):
        return None
    return made(0.5 + 0.25 * k for k in range(max(len(kinds), 2)))


def _of_class(cls: type, size: int) -> Any:
    if issubclass(cls, enum.Enum):
        return next(iter(cls), NotImplemented)
    if issubclass(cls, torch.Tensor):
        return torch.randn(size, dtype=torch.float64)
    if issubclass(cls, torch.nn.Module):
        return torch.nn.Linear(size, size) if cls is torch.nn.Module else _from_signature(cls, size)
    known = {torch.dtype: torch.float32, torch.device: torch.device("cpu")}
    if cls in known or cls.__module__ in _NO_OBJECTS:
        return known.get(cls, NotImplemented)
    made = _from_signature(cls, size)
    return _of_subclass(cls, size) if made is NotImplemented else made


#: Classes of which a subclass is being made: one that takes another object of its own base, as a
#: sum of operators does, is not made.
_being_made: set[type] = set()

#: Subclasses that are tried where a class itself can't be made (heuristic).
_MOST_SUBCLASSES = 8


def _of_subclass(cls: type, size: int) -> Any:
    """An instance of a class that derives from one which is abstract, or can't be made itself."""
    if cls in _being_made:
        return NotImplemented
    _being_made.add(cls)
    try:
        found = (_from_signature(other, size) for other in concrete_subclasses(cls))
        return next((made for made in found if made is not NotImplemented), NotImplemented)
    finally:
        _being_made.discard(cls)


def concrete_subclasses(cls: type) -> list[type]:
    """Classes that derive from ``cls`` in its own package and are not abstract, those that need the
    fewest arguments first."""
    found: dict[type[Any], None] = {}
    queue = collections.deque[type[Any]]([cls])
    while queue:
        derived = type.__subclasses__(queue.popleft())
        queue.extend(other for other in derived if other not in found)
        found.update(dict.fromkeys(derived))
    package = cls.__module__.partition(".")[0]
    own = [
        other
        for other in found
        if other.__module__.partition(".")[0] == package and not inspect.isabstract(other)
    ]
    return simplest_first(own)[:_MOST_SUBCLASSES]


def simplest_first(classes: Iterable[type]) -> list[type]:
    """``classes``, those first that need the fewest arguments."""
    return sorted(classes, key=lambda cls: len(_required(cls)))


def instance_of(cls: type) -> Any:
    """An instance of a class with guessed arguments; None where no guesses are taken."""
    for sizes in _SIZES:
        made = NotImplemented if inspect.isabstract(cls) else _from_signature(cls, sizes[0])
        if made is not NotImplemented:
            return made
    return None


def _from_signature(cls: type, size: int) -> Any:
    """An instance of a class with guessed arguments, such as a configuration (a dataclass or named
    tuple) or ``nn.Linear``. Its sizes differ, so that a transposition can't hide."""
    values: dict[str, Any] = {}
    try:
        for parameter in _required(cls):
            item = parameter.replace(annotation=_resolved(cls, parameter))
            own = size + sum(type(value) is int and value >= size for value in values.values())
            values[parameter.name] = _guess(item, own)
        return cls(**values)
    except Exception:
        return NotImplemented


def _kept(kept: Kept, size: int, otherwise: Any) -> Any:
    """A module, or a container of two, of the kind that a constructor asks for."""
    if kept.element is None:
        made = _of_class(kept.kind, size)
    else:
        parts = [_of_class(kept.element, size) for _ in range(2 * max(kept.width, 1))]
        failed = any(part is NotImplemented for part in parts)
        grouped = [tuple(parts[: kept.width]), tuple(parts[kept.width :])] if kept.width else parts
        made = NotImplemented if failed else kept.kind(grouped)
    return otherwise if made is NotImplemented else made


#: Types that documentation gives in place of an annotation.
_DOCUMENTED: dict[str, type] = {"int": int, "float": float, "bool": bool, "str": str}


def _resolved(cls: type, parameter: Parameter) -> Any:
    """The annotation of a constructor's parameter as an object, where its text can be resolved;
    where it has none, the number, flag or text that documentation says it is."""
    if parameter.annotation is Parameter.empty and parameter.default is Parameter.empty:
        return _documented_type(cls, parameter.name)
    if not isinstance(parameter.annotation, str):
        return parameter.annotation
    for holder in (cls.__init__, cls):  # type: ignore[misc]
        try:
            return get_type_hints(holder).get(parameter.name, parameter.annotation)
        except Exception:
            continue
    return parameter.annotation


def _documented_type(cls: type, name: str) -> Any:
    """The type of a parameter by ``:param int n: states``, ``n : int`` or ``n (int): states``."""
    texts = (inspect.getdoc(cls), inspect.getdoc(cls.__init__))  # type: ignore[misc]
    kinds = "|".join(_DOCUMENTED)
    own = re.escape(name)
    written = (
        rf":param\s+({kinds})\s+{own}:",
        rf"(?m)^\s*{own}\s*:\s*({kinds})\b",
        rf"(?m)^\s*{own}\s*\(({kinds})\b[^)]*\)\s*:",
    )
    found = (re.search(pattern, text) for text in texts if text for pattern in written)
    return next((_DOCUMENTED[match[1]] for match in found if match), Parameter.empty)


def _has_all(value: Any, read: Attributes) -> bool:
    """Whether a guessed value has what the class reads from it."""
    if value is NotImplemented:
        return False
    if read.keys:
        return isinstance(value, dict)
    return all(hasattr(value, name) for name in read.names)


def _stand_in(read: Attributes, sizes: tuple[int, ...]) -> Any:
    """An object, or a dict, with a guessed value for everything that the class reads from it."""
    values: dict[str, Any] = {}
    used = 0
    for name in (*read.keys, *read.names):
        size = sizes[used % len(sizes)]
        values[name] = _guess(Parameter(name, Parameter.KEYWORD_ONLY), size)
        used += values[name] is size
    return values if read.keys else SimpleNamespace(**values)


def _object(name: str, size: int) -> Any:
    if re.search(r"act(ivation)?(_layer|_fn|_func)?$|nonlin", name):
        return torch.nn.Tanh if name.endswith("layer") else torch.nn.Tanh()
    if re.search(r"norm_layer$", name):
        return torch.nn.LayerNorm
    if re.search(r"^(d|n|num|dim|size)_|_(dim|dims|size|width|channels|features)$", name):
        return size  # d_model, and so is encoder_dim
    if re.search(r"module|layer$|net$|model|block$|encoder$|decoder$|backbone", name):
        return torch.nn.Linear(size, size)
    if re.search(r"^(fn|func|function|f)$|_fn$|_func$", name):
        return torch.tanh
    if re.search(r"shape", name):
        return (size,)
    if re.search(r"^(weight|tensor|mean|std|init|target)s?$", name):
        return torch.rand(size, dtype=torch.float64) + 0.5
    return size


def _has_empty(module: torch.nn.Module) -> bool:
    """Whether a parameter has no elements: a width that was halved too often. Of one that waits for
    its first input nothing is known."""
    own = (item for item in module.parameters() if not torch.nn.parameter.is_lazy(item))
    return any(not item.numel() for item in own)


def _axis_is_size(module: torch.nn.Module, values: dict[str, Any]) -> bool:
    # `dim` names an axis in softmax-like modules and a width in layers; widths make parameters.
    guessed = any(name in _AXIS and value == -1 for name, value in values.items() if _plain(value))
    return guessed and any(True for _ in module.parameters())


def _plain(value: Any) -> bool:
    return isinstance(value, (int, float, str, bool))


def _comparable(value: Any) -> bool:
    """Whether it is plain, or a list or tuple of what is."""
    return _plain(value) or (isinstance(value, (list, tuple)) and all(map(_comparable, value)))


def _alike(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return all(
        _comparable(value) and _comparable(other[name]) and value == other[name]
        for name, value in one.items()
    )


def _not_constructible(
    cls: type,
    required: list[Parameter],
    tried: list[dict[str, Any]],
    failure: BaseException | None,
) -> LoadError:
    names = ", ".join(f"`{parameter.name}`" for parameter in required)
    last = f"; {shown_call(cls, tried[-1])} raised {error_line(failure)}" if failure else ""
    return LoadError(
        f"`{cls.__name__}` needs {names} to be constructed, and none of {len(tried)} guesses "
        f"worked{last}",
        failure,
        kind="constructor",
        hint=f"Make an instance in the module, `instance = {cls.__name__}(…)`, "
        "and check `module:instance`.",
    )


#: Attributes of types that arguments usually have: reading them says nothing of an object.
_OF_VALUES = frozenset(name for kind in (torch.Tensor, str, dict, list) for name in dir(kind))


# -- what a class reads from what its constructor is given -----------------------------------------


@dataclass(frozen=True)
class Attributes:
    """What is read from one object: attributes by ``x.name``, keys by ``x["name"]``."""

    names: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()


def attributes_read(cls: type, parameters: list[str]) -> dict[str, Attributes]:
    """Constructor's parameter → what the class reads from it, in its ``__init__`` or through the
    attribute of ``self`` that holds it. Parameters from which nothing is read are missing."""
    found = class_node(cls)
    if found is None:
        return {}
    holders = {name: {name, f"self.{name}"} for name in parameters}
    read: dict[str, Attributes] = {}
    for name in parameters:
        names = dict.fromkeys(_attributes(found[1], holders[name]))
        keys = dict.fromkeys(_keys(found[1], holders[name]))
        # A module or a tensor is told by what else happens to it.
        plain = tuple(item for item in names if item not in _OF_VALUES)
        if (plain and len(plain) == len(names)) or keys:
            read[name] = Attributes(plain, tuple(keys))
    return read


def _attributes(tree: ast.AST, holders: set[str]) -> Iterator[str]:
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and dotted(node.value) in holders:
            yield "get" if id(node) in called else node.attr


def _keys(tree: ast.AST, holders: set[str]) -> Iterator[str]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.Subscript) or dotted(node.value) not in holders:
            continue
        if isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str):
            yield node.slice.value
