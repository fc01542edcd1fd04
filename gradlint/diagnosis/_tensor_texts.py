"""PyTorch's error texts about in-place changes, dtypes, devices, shapes and memory.

The columns are those of ``_engine_texts``.
"""

from __future__ import annotations

_IN_PLACE = (
    (
        "leaf-modified-in-place",
        r"a leaf Variable that requires grad (is being|has been) used in an in-?place operation|"
        r"a view of a leaf Variable that requires grad is being used in an in-?place operation",
        "an input that requires grad was changed in place",
        "work out of place, or on a `.clone()`; inside a Function declare it with `ctx.mark_dirty`",
    ),
    (
        "function-view-modified",
        r"is a view and is being modified inplace",
        "an output that is a view of an input (or one of several views) was changed in place",
        "return a copy from forward: `.clone()` the output",
    ),
    (
        "no-grad-view-modified",
        r"(A|This) view was created in (no_grad|inference) mode|"
        r"view was created inside a custom Function",
        "a view made under `no_grad` (or inside a Function) was changed in place where autograd "
        "records",
        "do both inside or both outside of `no_grad`, or clone",
    ),
    (
        "overlapping-memory",
        r"more than one element of the written-to tensor refers to a single memory location",
        "an expanded tensor was written to",
        "write to a `.clone()` or `.contiguous()` of it",
    ),
)

_TYPES = (
    (
        "device-mismatch",
        r"Expected all tensors to be on the same device|is not on the expected device|"
        r"Expected .* to be on .*(cuda|cpu)|Input type \(.*cuda.*\) and weight type",
        "tensors on different devices met in one operation",
        "create tensors with `device=input.device`, and move buffers along with the inputs",
    ),
    (
        "cuda-not-available",
        r"Torch not compiled with CUDA enabled|Found no NVIDIA driver|No CUDA GPUs are available|"
        r"Cannot access accelerator device when none is available|0 active drivers",
        "the op needs a CUDA device, and there is none here",
        "run on a machine with a GPU, or give the op a CPU path",
    ),
    (
        "cuda-error",
        r"CUDA error: |device-side assert triggered|CUDA driver error",
        "a CUDA kernel failed; it may be an earlier one than the line shown",
        "run with `CUDA_LAUNCH_BLOCKING=1`, and check indices and launch sizes",
    ),
    (
        "out-of-memory",
        r"out of memory|can't allocate memory|Cannot allocate memory|"
        r"Storage size calculation overflowed",
        "memory ran out",
        "use smaller inputs, or look for an allocation that grows with the product of the sizes",
    ),
    (
        "no-backend",
        r"Could not run '.*' with arguments from the '.*' backend",
        "the operator has no kernel for this kind of tensor",
        "register a kernel for the device and layout, or convert the inputs",
    ),
    (
        "operator-not-registered",
        r"'_OpNamespace' '.*' object has no attribute",
        "no operator of this name is registered",
        "import the module, or load the library, that registers it first",
    ),
    (
        "dtype-not-implemented",
        r"not implemented for '\w+'|Low precision dtypes not supported|"
        r"is not supported for complex types|Got unsupported ScalarType",
        "an operation has no kernel for this dtype",
        "compute in a dtype it knows (`x.float()`) and convert back, or declare the dtypes of the "
        "op",
    ),
    (
        "index-dtype",
        r"tensors used as indices must be|Expected dtype int(32/int)?64 for index|"
        r"expected scalar type (Long|Int) but found (Float|Double|Half|BFloat16)|"
        r"expected target dtype to be|to have one of the following scalar types: (Long|Int)|"
        r"expected condition to be a boolean tensor",
        "an index, class or mask tensor has a dtype that can't serve as one",
        "pass an integer tensor for indices and classes, a boolean one for masks",
    ),
    (
        "dtype-mismatch",
        r"expected scalar type \w+ but found \w+|expected m1 and m2 to have the same dtype|"
        r"to have (the )?same dtype|must have the same (scalar type|dtype)|"
        r"\w+ did not match \w+|expected dtype \w+ .*but got dtype|same dtypes but got|"
        r"Expected self\.dtype to be equal to|all inputs must share same datatype|"
        r"source and destination dtypes match|does not match weight dtype",
        "tensors of different dtypes met in one operation",
        "create tensors with `dtype=input.dtype` (`torch.zeros_like`, `x.new_zeros`) instead of "
        "the default float32",
    ),
    (
        "in-place-dtype",
        r"result type \w+ can't be cast to the desired output type",
        "the result of an in-place operation does not fit the dtype of its target",
        "work out of place, or convert first",
    ),
    (
        "view-of-non-contiguous",
        r"view size is not compatible with input tensor's size and stride|"
        r"(must be|to be|is not|be a) contiguous",
        "`.view` (or a kernel) needs a contiguous tensor and got another layout",
        "use `.reshape(...)`, or call `.contiguous()` first; incoming gradients may have any "
        "layout",
    ),
    (
        "shape-mismatch",
        r"The size of tensor a \(\d+\) must match the size of tensor b|"
        r"shapes cannot be multiplied|is invalid for input of size|"
        r"The expanded size of the tensor|doesn't match the broadcast shape|"
        r"Sizes of tensors must match|expects each tensor to be equal size|"
        r"does not broadcast with previously seen size|to have \d+ channels, but got",
        "shapes of tensors do not fit together in one operation",
        "compare the shapes at the line shown: often a missing transposition, `unsqueeze` or sum",
    ),
    (
        "index-out-of-range",
        r"is out of bounds for dimension|index out of range|Dimension out of range",
        "an index or an axis lies outside of the tensor",
        "check the index against the shape; the op may need inputs of another rank",
    ),
    (
        "none-in-arithmetic",
        r"unsupported operand type\(s\) for .*'NoneType'|"
        r"'NoneType' object has no attribute '(shape|dtype|device|sum|mul|view|contiguous|size|"
        r"new_zeros|clone|t|mT|reshape)'|argument '.*' .*must be Tensor, not NoneType",
        "`None` was used as a tensor: incoming gradients are `None` for unused outputs under "
        "`ctx.set_materialize_grads(False)`, and optional arguments may be `None`",
        "test for `None` before using it",
    ),
)

TENSOR_TEXTS: tuple[tuple[str, str, str, str], ...] = (*_IN_PLACE, *_TYPES)
