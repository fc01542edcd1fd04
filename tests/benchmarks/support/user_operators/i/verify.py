"""Checks that right/ is right on cases.py and samples.py and that wrong/ shows each fault."""

import importlib.util
import pathlib
import sys
import warnings

import torch
from torch.autograd import gradcheck, gradgradcheck

import cases
import samples

warnings.filterwarnings("ignore")
torch.set_num_threads(1)
HERE = pathlib.Path(__file__).parent


def load(side, group):
    spec = importlib.util.spec_from_file_location(f"{side}_{group}", HERE / side / f"{group}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def function_of(cls, make=None):
    return make(cls) if make else cls.apply


def tensors(args):
    return [a for a in args if isinstance(a, torch.Tensor) and a.requires_grad]


def passes(check, fn, args, **kw):
    try:
        return check(fn, args, **kw), ""
    except Exception as error:
        return False, f"{type(error).__name__}: {str(error).strip()[:300]}"


def first(fn, args, **kw):
    return passes(gradcheck, fn, args, **kw)


def second(fn, args):
    return passes(gradgradcheck, fn, args)


def differentiable(out):
    outs = out if isinstance(out, tuple) else (out,)
    return [o for o in outs if o.requires_grad]


def seeds(outs):
    g = torch.Generator().manual_seed(99)
    return [torch.randn(o.shape, generator=g, dtype=o.dtype) for o in outs]


def grads(fn, args, layout=None, needed=None):
    """Gradients for fixed random incoming gradients; copies of the inputs are used."""
    needed = range(len(args)) if needed is None else needed
    own, leaves = [], []
    for i, a in enumerate(args):
        if isinstance(a, torch.Tensor):
            take = a.requires_grad and i in needed
            a = a.detach().clone().requires_grad_(take)
            if take:
                leaves.append(a)
        own.append(a)
    outs = differentiable(fn(*own))
    incoming = seeds(outs)
    if layout:
        incoming = [layout(g) for g in incoming]
    return torch.autograd.grad(outs, leaves, incoming, allow_unused=True)


def scattered(g):
    """The same numbers in a layout that is not contiguous."""
    if g.dim() == 0:
        return g
    wide = torch.zeros(*g.shape, 2, dtype=g.dtype)
    wide[..., 0] = g
    return wide[..., 0].mT.contiguous().mT if g.dim() > 1 else wide[..., 0]


def same(a, b, tol=1e-10):
    return len(a) == len(b) and all(
        x is not None and y is not None and torch.allclose(x, y, rtol=tol, atol=tol)
        for x, y in zip(a, b)
    )


def single(x):
    if not isinstance(x, torch.Tensor):
        return x
    kind = {torch.float64: torch.float32, torch.complex128: torch.complex64}
    return x.detach().to(kind.get(x.dtype, x.dtype)).requires_grad_(x.requires_grad)


def careful(fn, args, float32=True):
    """What a careful author would see to besides the numbers."""
    bad = []
    before = [a.detach().clone() if isinstance(a, torch.Tensor) else a for a in args]
    base = grads(fn, args)
    differentiable(fn(*args))[0].abs().sum().backward()
    for a in tensors(args):
        a.grad = None
    for a, b in zip(args, before):
        if isinstance(a, torch.Tensor) and not torch.equal(a.detach(), b):
            bad.append("input changed")
    if not same(base, grads(fn, args, scattered)):
        bad.append("layout of grad")
    wanted = [i for i, a in enumerate(args) if isinstance(a, torch.Tensor) and a.requires_grad]
    for at, i in enumerate(wanted):
        if not same(base[at : at + 1], grads(fn, args, needed=[i])):
            bad.append(f"alone {i}")
    if float32:
        small = [single(a) for a in args]
        outs = differentiable(fn(*small))
        low = torch.autograd.grad(outs, tensors(small), [single(s) for s in seeds_like(fn, args)])
        for got, want, a in zip(low, base, tensors(small)):
            scale = float(want.abs().max()) + 1e-6
            if got.dtype != a.dtype or float((got - want).abs().max()) > 2e-3 * scale:
                bad.append(f"float32 {float((got - want).abs().max()) / scale:.1e}")
    return bad


def seeds_like(fn, args):
    return seeds(differentiable(fn(*args)))


# Faults that gradcheck does not see.


def shows_change(right, wrong, make_args):
    args = make_args()
    before = args[0].detach().clone()
    wrong(*args)
    return not torch.equal(args[0].detach(), before)


def shows_precision(right, wrong, make_args):
    return same(grads(right, make_args()), grads(wrong, make_args()), 1e-3) and not same(
        grads(right, make_args()), grads(wrong, make_args()), 1e-9
    )


def shows_dtype(right, wrong, make_args):
    return not same(grads(right, make_args()), grads(wrong, make_args()), 1e-9)


def shows_layout(right, wrong, make_args):
    try:
        return not same(grads(wrong, make_args(), scattered), grads(right, make_args()))
    except RuntimeError as error:
        return "view" in str(error)


def shows_state(right, wrong, make_args):
    events, ages = make_args()
    with torch.no_grad():
        wrong(events, ages + torch.arange(ages.shape[1]))
        right(events, ages + torch.arange(ages.shape[1]))
    return not torch.allclose(wrong(events, ages), right(events, ages))


def shows_incoming(right, wrong, make_args):
    (x,) = make_args()
    incoming = torch.ones(x.shape, dtype=x.dtype)
    torch.autograd.grad(wrong(x), x, incoming)
    return not torch.equal(incoming, torch.ones_like(incoming))


DIRECT = {
    "DarkObjectSubtract": shows_change,
    "SmoothedCrossEntropy": shows_change,
    "AlsRowSolve": shows_dtype,
    "PolygonMoments": shows_precision,
    "VertexNormals": shows_layout,
    "RecencyPool": shows_state,
    "NeighbourSmoother": shows_incoming,
}
NO_FLOAT32 = {"AlsRowSolve"}
JVP = {"HelmholtzPeriodic", "ArakawaJacobian", "PartialRotary", "FieldPairScore", "RationalBezier"}


def main(only):
    agreed = 0
    for case in cases.CASES:
        name = case["name"]
        if only and name not in only:
            continue
        make = getattr(cases, case["make"]) if "make" in case else None
        make_args = getattr(cases, case["inputs"])
        right_cls = getattr(load("right", case["group"]), name)
        wrong_cls = getattr(load("wrong", case["group"]), name)
        right, wrong = function_of(right_cls, make), function_of(wrong_cls, make)
        problems = []
        ok, note = first(right, make_args(), check_forward_ad=name in JVP)
        if not ok:
            problems.append(f"right first: {note}")
        ok, note = second(right, make_args())
        if ok != (case["second_order_right"] is True):
            problems.append(f"right second is {ok}: {note}")
        problems += careful(right, make_args(), name not in NO_FLOAT32)
        more = samples.SAMPLES[name]
        if len(more) < 2:
            problems.append("too few samples")
        for at, sample in enumerate(more):
            fn, args = samples.build(right_cls, sample)
            ok, note = first(fn, args, check_forward_ad=name in JVP)
            if not ok:
                problems.append(f"sample {at} first: {note}")
            twice = case["second_order_right"] is True or sample.get("twice") is True
            if twice and sample.get("twice") is not False:
                ok, note = second(fn, args)
                if not ok:
                    problems.append(f"sample {at} second: {note}")
        direct = DIRECT.get(name)
        if direct:
            if not direct(function_of(right_cls, make), function_of(wrong_cls, make), make_args):
                problems.append("fault does not show")
            if case["shows"] != "first":
                problems.append("shows should be first")
        else:
            one, note1 = first(wrong, make_args())
            two, note2 = second(function_of(wrong_cls, make), make_args())
            if case["second_order_right"] is not True:
                two = True
            seen = {(False, True): "first", (True, False): "second", (False, False): "both"}
            seen = seen.get((bool(one), bool(two)), "nothing")
            if seen != case["shows"]:
                problems.append(f"wrong shows {seen}, not {case['shows']}: {note1} | {note2}")
        agreed += not problems
        for problem in problems:
            print(f"{name}: {problem}", flush=True)
    print(f"{agreed} of {len(only) or len(cases.CASES)} agree")


if __name__ == "__main__":
    main(sys.argv[1:])
