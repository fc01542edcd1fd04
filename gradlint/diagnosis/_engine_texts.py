"""The table of PyTorch's error texts: slug, pattern, what it means, what to change.

The first pattern that matches wins, so special ones stand before general ones. Texts change between
releases, so patterns contain the part that has stayed the same; the tests provoke each of them.
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
        "do both inside or both outside `no_grad`, or clone",
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
        r"Cannot access accelerator device when none is available|CudaSupportError|"
        r"\bCUDA_ERROR_NO_DEVICE|cudaError(NoDevice|InsufficientDriver)|libcuda\.so",
        "the op needs a CUDA device, but this machine has none",
        "run on a machine with a GPU, or give the op a CPU path",
    ),
    (
        "cuda-tensors-only",
        r"(?i:(must|should|has to|have to|needs? to) (be|live|reside) (on |in |an? )*(cuda|gpu)\b"
        r"|(is|are) not (on |an? )*(cuda|gpu)\b|(requires?|needs?|expects?) (an? )?(cuda|gpu)\b"
        r"|only (supports?|works?|runs?|implemented) (on |for |with )*(cuda|gpu)\b"
        r"|(is|are|was)? ?not (yet )?(implemented|supported|available) (on|for|with) (the )?cpu\b"
        r"|\bno cpu (implementation|version|kernel|support)|\bcpu (\w+ )?(is |are )?not "
        r"(yet )?(implemented|supported)|doe?s?(n't| not) support (the )?cpu\b"
        r"|expected a cuda device\b)",
        "the op takes tensors on a GPU only",
        "check it on a machine with a GPU, with `--device cuda` and inputs made on the CPU",
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
        "an index, class or mask tensor has an unsuitable dtype",
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
        "an index or an axis lies outside the tensor",
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


_RETURNED = (
    (
        "wrong-number-of-gradients",
        r"returned an incorrect number of gradients \(expected \d+, got \d+\)",
        "backward must return exactly one value for every argument of forward (without `ctx`)",
        "return one value per argument, in the order of forward; `None` for those that are not "
        "tensors or need no gradient",
    ),
    (
        "gradient-for-non-tensor",
        r"returned a gradient different than None at position \d+, but the corresponding forward "
        r"input was not a Variable",
        "backward returned a gradient for an argument that is not a tensor",
        "return `None` at that position; if it was meant for another argument, the order of the "
        "returned values does not match the order of forward's arguments",
    ),
    (
        "gradient-not-a-tensor",
        r"expected Variable or None \(got ",
        "backward returned something that is neither a tensor nor `None`",
        "return a tensor (and a tuple, not a list, for several gradients)",
    ),
    (
        "invalid-gradient-shape",
        r"returned an invalid gradient at index \d+ - got \[.*\] but expected shape compatible",
        "a gradient's shape can't be reduced to the shape of its input",
        "return a gradient of the input's shape: check transpositions, and sum over the axes that "
        "forward broadcast",
    ),
    (
        "invalid-gradient-device",
        r"returned an invalid gradient at index \d+ - expected device",
        "a gradient is on a different device than its input",
        "create gradients with `torch.empty_like(input)` or `device=input.device`",
    ),
    (
        "invalid-gradient-dtype",
        r"isFloatingType\(grad\.scalar_type\(\)\) \|\| \(input_is_complex == grad_is_complex\)|"
        r"returned an invalid gradient at index \d+ - expected (type|dtype|layout)",
        "a complex gradient was returned for a real input",
        "return the real part: `grad.real`",
    ),
    (
        "nan-in-backward",
        r"Function '.*' returned nan values in its \d+th output",
        "anomaly detection found NaN in a gradient",
        "guard the division, logarithm or root that backward computes at this point",
    ),
)

_SAVED = (
    (
        "backward-twice",
        r"Trying to backward through the graph a second time",
        "the graph was used after its saved tensors had been freed by the first backward pass",
        "pass `retain_graph=True` to the first backward, or run forward again; do not keep `ctx` "
        "or a graph between calls",
    ),
    (
        "saved-tensor-accessed-twice",
        r"saved_tensors can only be accessed once when clear_saved_tensors_on_access",
        "`ctx.saved_tensors` was read twice although the Function clears it on first access",
        "unpack `ctx.saved_tensors` once, or drop `clear_saved_tensors_on_access = True`",
    ),
    (
        "saved-tensor-modified",
        r"one of the variables needed for gradient computation has been modified by an inplace",
        "a tensor that backward needs was changed in place after it had been saved",
        "work out of place, or save a `.clone()`; if forward changes its own input or output, save "
        "it after the change and declare the input with `ctx.mark_dirty`",
    ),
    (
        "save-for-backward-non-tensor",
        r"save_for_backward can only save variables, but argument \d+ is of type",
        "`ctx.save_for_backward` takes tensors (or `None`) only",
        "keep numbers, shapes and modules as attributes: `ctx.scale = scale`; pass tensors one by "
        "one, not in a list",
    ),
    (
        "save-for-forward-non-tensor",
        r"save_for_forward expects all arguments to be tensors",
        "`ctx.save_for_forward` takes tensors only",
        "keep everything else as attributes of `ctx`",
    ),
    (
        "inference-tensor",
        r"Inference tensors? cannot be saved for backward|Inplace update to inference tensor",
        "a tensor made under `torch.inference_mode()` takes part in a computation with gradients",
        "make it under `torch.no_grad()` instead, or `.clone()` it outside",
    ),
    (
        "saved-tensor-hooks",
        r"don't yet support saved tensor hooks",
        "`torch.func` was called while saved-tensor hooks were active",
        "call the op outside the hooks (checkpointing, offloading)",
    ),
    (
        "unpack-saved-tensors",
        r"(not enough|too many) values to unpack \(expected",
        "a tuple was unpacked into the wrong number of names",
        "unpack as many names as forward saved or returned: a single saved tensor is `x, = "
        "ctx.saved_tensors`",
    ),
    (
        "missing-context-attribute",
        r"'\w+Backward' object has no attribute ",
        "backward reads an attribute of `ctx` that forward did not set",
        "set it in forward (or `setup_context`) on every path that leads to this backward",
    ),
    (
        "checkpoint-differs",
        r"torch\.utils\.checkpoint: .* (recompute|saved)|"
        r"When use_reentrant=True, torch\.utils\.checkpoint is incompatible",
        "a checkpointed region cannot be differentiated this way",
        "pass `use_reentrant=False`, and make the recomputation save the same tensors",
    ),
)

_GRAPH = (
    (
        "differentiated-tensor-unused",
        r"One of the differentiated Tensors appears to not have been used in the graph|"
        r"The differentiated Tensor at index \d+ appears to not have been used in the graph",
        "the output does not depend on this input as far as autograd can see",
        "look for `.detach()`, `.data`, `torch.no_grad()`, a copy through NumPy or an unused "
        "argument on the way from the input to the output",
    ),
    (
        "differentiated-tensor-needs-no-gradient",
        r"One of the differentiated Tensors does not require grad",
        "a gradient was requested for a tensor that does not require grad",
        "call `.requires_grad_()` on it before it is used",
    ),
    (
        "once-differentiable",
        r"trying to differentiate twice a function that was marked with @once_differentiable",
        "this backward is declared first order only, but a second derivative was requested",
        "write backward with differentiable operations and drop `@once_differentiable`, or do not "
        "request second derivatives",
    ),
    (
        "no-graph",
        r"element \d+ of (tensors|variables) does not require grad and does not have a grad_fn",
        "the output is not connected to any input that requires grad",
        "look for `.detach()`, `.data`, `torch.no_grad()` or a copy through NumPy; backward itself "
        "must use tracked operations for second derivatives",
    ),
    (
        "no-autograd-formula",
        r"no autograd formula was registered|autograd kernel was not registered",
        "this operator has no backward",
        "register one with `torch.library.register_autograd`",
    ),
    (
        "derivative-not-implemented",
        r"derivative for .* is not implemented",
        "PyTorch has no derivative for this operation or this argument",
        "detach the argument if it is a constant, or compute with operations that have one",
    ),
    (
        "non-scalar-backward",
        r"grad can be implicitly created only for (real )?scalar outputs",
        "`.backward()` without an argument was called on a tensor that is not a real scalar",
        "reduce to a scalar first, or pass the incoming gradient",
    ),
    (
        "grad-output-shape",
        r"Mismatch in shape: grad_output\[\d+\] has a shape of",
        "the incoming gradient does not have the shape of the output",
        "pass a gradient of the output's shape",
    ),
    (
        "grad-on-integer-tensor",
        r"[Oo]nly Tensors of floating point (and complex )?dtype can require gradients",
        "an integer or boolean tensor was set to require grad",
        "convert it to a floating dtype, or leave it without gradient",
    ),
    (
        "not-a-leaf",
        r"you can only change requires_grad flags of leaf variables",
        "`requires_grad` was changed on a computed tensor",
        "use `.detach()` for a copy without gradient",
    ),
    (
        "out-argument",
        r"functions with out=\.\.\. arguments don't support automatic differentiation",
        "`out=` was used where autograd records",
        "assign the result instead of passing `out=`",
    ),
    (
        "numpy-of-tracked-tensor",
        r"Can't call numpy\(\) on Tensor that",
        "a tensor that autograd tracks, or that is lazily conjugated, was converted to NumPy",
        "convert `x.detach()` (and `.resolve_conj()`); inside a Function's forward nothing is "
        "tracked",
    ),
    (
        "deepcopy-of-tracked-tensor",
        r"Only Tensors created explicitly by the user .* support the deepcopy protocol",
        "a computed tensor that requires grad was deep-copied",
        "copy `x.detach().clone()`",
    ),
)

_FUNCTION = (
    (
        "legacy-function",
        r"Legacy autograd function with non-static forward method is deprecated",
        "a Function was instantiated and called; this style was removed",
        "make forward and backward static methods that take `ctx` first, and call "
        "`MyFunction.apply(...)`",
    ),
    (
        "forward-called-directly",
        r"'(NoneType|Tensor|int|float)' object has no attribute "
        r"'(save_for_backward|needs_input_grad|mark_dirty|mark_non_differentiable|"
        r"set_materialize_grads|saved_tensors|save_for_forward)'",
        "the `ctx` of forward or backward is not a context: forward was called directly, a "
        "`@staticmethod` or the `ctx` parameter is missing, or forward takes `ctx` although "
        "`setup_context` is defined",
        "call `MyFunction.apply(...)`; forward takes `ctx` first, unless `setup_context` is "
        "defined, in which case only that one gets it",
    ),
    (
        "no-backward",
        r"You must implement either the backward or vjp method",
        "this Function has no backward",
        "add a static method `backward(ctx, *grad_outputs)`",
    ),
    (
        "no-forward",
        r"You must implement the forward function for custom autograd\.Function",
        "this Function has no forward",
        "add a static method `forward(ctx, ...)`",
    ),
    (
        "backward-and-vjp",
        r"Implementing both 'backward' and 'vjp' for a custom Function is not allowed",
        "`backward` and `vjp` are two names of one method, and both are defined",
        "keep one of them",
    ),
    (
        "no-jvp",
        r"You must implement the jvp function for custom autograd\.Function",
        "forward mode was applied to a Function without `jvp`",
        "add a static method `jvp(ctx, *tangents)`, or use reverse mode",
    ),
    (
        "vmap-ambiguous",
        r"it has both generate_vmap_rule=True and an overrid+en vmap staticmethod",
        "`generate_vmap_rule` and a `vmap` method exclude each other",
        "keep one of them",
    ),
    (
        "no-vmap",
        r"does not have vmap support|To use autograd\.Function with vmap, you must",
        "`torch.vmap` was applied to a Function without support for it",
        "set `generate_vmap_rule = True` or write the static method `vmap`",
    ),
    (
        "no-setup-context",
        r"it must override the setup_context\s+staticmethod",
        "`torch.func` transforms need the style with `setup_context`",
        "split forward: `forward(*args)` computes, `setup_context(ctx, inputs, output)` saves",
    ),
    (
        "forward-called-directly",
        r"forward\(\) missing \d+ required positional argument",
        "forward got too few arguments: it was called directly, without the `ctx` that only "
        "`apply` passes, or `apply` was called with too few",
        "call `MyFunction.apply(...)` with all of forward's arguments except `ctx`",
    ),
    (
        "context-used-as-tensor",
        r"unsupported operand type\(s\) for .*'\w+Backward'|"
        r"must be Tensor, not \w+Backward|bad operand type for .*'\w+Backward'",
        "forward computes with its first parameter, which is the context: `ctx` is missing",
        "write `forward(ctx, ...)`, or define `setup_context(ctx, inputs, output)`, which makes "
        "forward take the arguments alone",
    ),
    (
        "context-parameter-mismatch",
        r"missing a required argument: '|"
        r"(forward|backward|vjp|setup_context|<lambda>)\(\) "
        r"(takes|missing) .*(positional|keyword-only) argument",
        "the arguments that were passed do not fit the method's parameters",
        "forward takes `ctx` and then the arguments of `apply` (no `ctx` if `setup_context` is "
        "defined); backward takes `ctx` and one gradient per output of forward; "
        "`setup_context(ctx, inputs, output)` takes these three. All are static methods",
    ),
    (
        "mark-dirty-not-returned",
        r"Some elements marked as dirty during the forward method were not returned as output",
        "an input declared with `ctx.mark_dirty` is not among the outputs",
        "return the input that was changed in place",
    ),
    (
        "mark-dirty-non-tensor",
        r"mark_dirty can only accept variables",
        "`ctx.mark_dirty` takes tensors only, one by one",
        "pass the inputs that were changed in place: `ctx.mark_dirty(x, y)`",
    ),
    (
        "mark-non-differentiable-non-tensor",
        r"mark_non_differentiable only accepts variable arguments",
        "`ctx.mark_non_differentiable` takes tensors only, one by one",
        "pass the outputs that have no gradient: `ctx.mark_non_differentiable(indices)`",
    ),
    (
        "dirty-view",
        r"If your Function modifies inplace an input that is a view of another Tensor",
        "a Function that changes a view in place may return only that one tensor",
        "split it in two Functions, or clone the input first",
    ),
)

#: What Python says of an op that needs more than its arguments: these do not come from PyTorch.
#: Their texts begin with the name of the exception.
SURROUNDINGS = (
    (
        "server-not-reached",
        r"^(\w*\.)*(URLError|HTTPError|gaierror|herror|SSLError|Connection\w*Error|Connect\w*Error)(:|$)"
        r"|^(\w*\.)*(OSError|TimeoutError|ConnectTimeout|ReadTimeout): .*"
        r"(unreachable|resolution|not known|timed out|refused)",
        "it talks to a server, which is not reached from here",
        "run it where the server is reached, or let the caller fetch what it needs and pass it in",
    ),
    (
        "file-not-opened",
        r"^(FileNotFoundError|PermissionError|IsADirectoryError|NotADirectoryError)(:|$)",
        "it opens a file that is not there, or not for it",
        "run it in the folder that its paths start from, or let the caller read the file and pass "
        "in what it holds",
    ),
    (
        "module-not-installed",
        # Packages raise errors of their own, in whose text Python's stands.
        r"^(\w*\.)*\w*(ModuleNotFound|Import)Error: |No module named '[\w.]+'[).]*($|\n|\. )"
        r"|\bpip3? install ",
        "it imports a package that is not installed here",
        "install the package that is named",
    ),
    (
        "triton-without-gpu",
        r"\b0 active drivers|cannot be accessed from Triton \(cpu tensor\?\)",
        "Triton compiles its kernels for a GPU, and these tensors are on none",
        "run the kernels on the CPU, in Triton's interpreter, with `gradlint check "
        "--triton-interpret` (other commands: TRITON_INTERPRET=1), or on a machine with a GPU with "
        "`--device cuda`",
    ),
)

KNOWN: tuple[tuple[str, str, str, str], ...] = (
    *_RETURNED,
    *_SAVED,
    *_GRAPH,
    *_FUNCTION,
    *TENSOR_TEXTS,
    *SURROUNDINGS,
)
