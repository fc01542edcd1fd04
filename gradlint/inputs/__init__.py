"""From an op to the samples it is run on."""

from typing import TYPE_CHECKING, Any

from gradlint.inputs._sample import Sample, map_tensors, positional_names, short_text

if TYPE_CHECKING:
    from gradlint.inputs._infer import infer
    from gradlint.inputs._lazy import with_shapes
    from gradlint.inputs._not_found import NoInputsFound
    from gradlint.inputs._samples import samples_for

_LAZY = {
    "NoInputsFound": "_not_found",
    "infer": "_infer",
    "samples_for": "_samples",
    "with_shapes": "_lazy",
}

__all__ = [
    "NoInputsFound",
    "Sample",
    "infer",
    "map_tensors",
    "positional_names",
    "samples_for",
    "short_text",
    "with_shapes",
]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        import importlib

        return getattr(importlib.import_module(f"gradlint.inputs.{_LAZY[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
