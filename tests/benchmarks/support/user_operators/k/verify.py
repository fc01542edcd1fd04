"""Proves by central differences that every right operator is right and every wrong one wrong.

Run: python verify.py [NAME ...]
"""
import importlib.util
import os
import sys
import warnings
from collections import Counter

import numpy as np
import torch

torch.set_num_threads(1)
warnings.filterwarnings("ignore")
HERE = os.path.dirname(os.path.abspath(__file__))
F64 = torch.float64


def load(path, name):
    spec = importlib.util.spec_from_file_location(name, path)
    mod = importlib.util.module_from_spec(spec)
    sys.modules[name] = mod  # dataclasses look their module up
    spec.loader.exec_module(mod)
    return mod


cases = load(os.path.join(HERE, "cases.py"), "k_cases")
r, u, t, s = cases._r, cases._u, cases._t, cases._s


def op(name, side):
    return load(os.path.join(HERE, side, name + ".py"), f"k_{side}_{name}")


def instance(mod, case, make=None):
    obj = getattr(mod, case["name"])
    if case["form"] == "function":
        return obj.apply, []
    if case["form"] == "module":
        m = (make or case["make"])(obj)
        return m, list(m.parameters())
    return obj, []


def leaves(args, params):
    return [a for a in args if isinstance(a, torch.Tensor) and a.requires_grad] + params


def outputs(call, args):
    out = call(*args)
    out = out if isinstance(out, (tuple, list)) else (out,)
    return [o for o in out if o.is_floating_point() or o.is_complex()]


def real_dot(a, b):
    p = a.conj() * b if a.is_complex() or b.is_complex() else a * b
    return (p.real if p.is_complex() else p).sum()


def central(scalar, ts, h=1e-6):
    """dscalar/dt for every tensor, entry by entry; complex: d/dRe + i d/dIm."""
    res = []
    for x in ts:
        g = torch.zeros_like(x, requires_grad=False)
        steps = [1.0, 1.0j] if x.is_complex() else [1.0]
        for idx in np.ndindex(*x.shape):
            for e in steps:
                keep = x.data[idx].clone()
                x.data[idx] = keep + e * h
                up = scalar()
                x.data[idx] = keep - e * h
                down = scalar()
                x.data[idx] = keep
                g[idx] += e * (up - down) / (2 * h)
        res.append(g)
    return res


def rel(a, b):
    """a: claimed (or None), b: by differences"""
    a = torch.zeros_like(b) if a is None else a.detach()
    if a.shape != b.shape:
        return float("inf")
    d = (a - b).abs().max().item() if b.numel() else 0.0
    n = b.abs().max().item() if b.numel() else 0.0
    if d != d:
        return float("inf")
    return d / max(n, 1e-3)


def weights(call, args):
    with torch.no_grad():
        outs = outputs(call, args)
    torch.manual_seed(3)
    return [torch.randn_like(o) for o in outs]


def first(call, args, params):
    ts = leaves(args, params)
    cs = weights(call, args)

    def scalar():
        with torch.no_grad():
            return sum(real_dot(c, o) for c, o in zip(cs, outputs(call, args)))
    outs = outputs(call, args)
    gs = torch.autograd.grad(outs, ts, [c.clone() for c in cs], allow_unused=True)
    return max(rel(g, f) for g, f in zip(gs, central(scalar, ts)))


def second(call, args, params):
    ts = leaves(args, params)
    cs = [c.requires_grad_() for c in weights(call, args)]
    torch.manual_seed(4)
    vs = [torch.randn_like(x) for x in ts]

    def grads(create):
        return torch.autograd.grad(outputs(call, args), ts, cs, create_graph=create, allow_unused=True)

    def scalar():
        return sum(real_dot(v, g.detach()) for v, g in zip(vs, grads(False)) if g is not None)
    total = sum(real_dot(v, g) for v, g in zip(vs, grads(True)) if g is not None)
    every = ts + cs
    got = torch.autograd.grad(total, every, allow_unused=True) if total.requires_grad else [None] * len(every)
    return max(rel(g, f) for g, f in zip(got, central(scalar, every)))


def prohibited(call, args, params):
    """Must raise.  (autograd.grad with allow_unused would not even look at the node that raises.)"""
    cs = [c.requires_grad_() for c in weights(call, args)]
    gs = torch.autograd.grad(outputs(call, args), leaves(args, params), cs, create_graph=True, allow_unused=True)
    sum(g.abs().sum() for g in gs if g is not None and g.requires_grad).backward()


def layouts(call, args, params):
    """The gradient must not depend on the layout of grad_output, nor on a second backward; the inputs and
    the incoming gradient must be left as they are."""
    ts = leaves(args, params)
    cs = weights(call, args)
    before = [x.detach().clone() for x in ts]
    outs = outputs(call, args)
    kept = [o.detach().clone() for o in outs]
    sent = [c.clone() for c in cs]
    a = torch.autograd.grad(outs, ts, sent, allow_unused=True, retain_graph=True)
    strided = [torch.stack((c, c + 1), -1)[..., 0] for c in cs]
    b = torch.autograd.grad(outs, ts, strided, allow_unused=True, retain_graph=True)
    e1 = torch.autograd.grad(sum(real_dot(torch.ones_like(o), o) for o in outs), ts, allow_unused=True, retain_graph=True)
    e2 = torch.autograd.grad(outs, ts, [torch.ones_like(o) for o in outs], allow_unused=True)
    for p, q in list(zip(a, b)) + list(zip(e1, e2)):
        assert p is not None and torch.allclose(p, q, rtol=1e-10, atol=1e-12), "layout of grad_output matters"
    for p, q in zip(before + kept + cs, ts + outs + sent):
        assert torch.equal(p, q.detach()), "something was changed in place"


def right_ok(case, call, args, params, label):
    e1 = first(call, args, params)
    assert e1 < 1e-6, f"{label}: first order off by {e1:.2g}"
    layouts(call, args, params)
    if case["second_order_right"] is None:
        try:
            prohibited(call, args, params)
        except RuntimeError as e:
            assert "once_differentiable" in str(e), f"{label}: {e}"
        else:
            raise AssertionError(f"{label}: second order neither right nor prohibited")
        return e1, None
    e2 = second(call, args, params)
    assert e2 < 1e-6, f"{label}: second order off by {e2:.2g}"
    return e1, e2


def wrong_is_wrong(case, call, args, params):
    try:
        e1 = first(call, args, params)
    except Exception as e:  # noqa
        return "raises " + str(e).splitlines()[0][:80]
    if case["shows"] == "first":
        assert e1 > 1e-2, f"fault does not show: {e1:.2g}"
        return f"first order off by {e1:.2g}"
    assert e1 < 1e-6, f"first order was to be right: {e1:.2g}"
    e2 = second(call, args, params)
    assert e2 > 1e-2, f"fault does not show: {e2:.2g}"
    return f"second order off by {e2:.2g}"


# ---------------------------------------------------------------- two further inputs of every right operator
def I(*v):
    return torch.tensor(v)


def scalar(v):
    return torch.tensor(v, dtype=F64).requires_grad_()


def hist(cls, *a, **k):
    torch.manual_seed(77)
    return cls(*a, **k).double()


def logmel(cls):
    cfg = sys.modules[cls.__module__].MelConfig(n_freq=6, n_mels=2, floor=0.05)
    return cls(cfg).double()


def evi_cfg(mod, **k):
    return mod.EVIConfig(**k)


MORE = {
    "SobelMagnitude": [lambda m: (r(2, 1, 1, 3), 0.1, False), lambda m: (r(1, 3, 3, 2), 1e-2)],
    "SpectralIndex": [lambda m: (u(.3, .6, 5), u(.1, .2, 5), u(.02, .05, 5), m.EVIConfig(2.0, 1.5, 0.5, 0.2)),
                      lambda m: (u(.3, .6, 2, 1, 2), u(.1, .2, 2, 1, 2), u(.02, .05, 2, 1, 2))],
    "BilinearPointSample": [lambda m: (r(3, 2, 2), u(-0.9, 1.9, 6, 2)), lambda m: (r(1, 5, 3), u(-3.0, 6.0, 8, 2))],
    "SRGBTransfer": [lambda m: (t([.01, .03], [.05, .7]), True), lambda m: (u(0, 1, 2, 3, 2), False)],
    "CharbonnierTV": [lambda m: (r(3, 4), 0.2, "sum"), lambda m: (r(2, 2, 3, 2), 0.05, "none")],
    "box_filter": [lambda m: (r(4, 3), 2), lambda m: (r(1, 2, 3, 3), 0)],
    "SpectralAngleLoss": [lambda m: (u(.1, 1, 3, 5), u(.1, 1, 3, 5)),
                          lambda m: (u(.1, 1, 2, 3, 2, 2), u(.1, 1, 2, 3, 2, 2), I([[True, False], [True, True]], [[False, False], [True, True]]))],
    "cloud_fill": [lambda m: (r(1, 2, 3, 2), torch.zeros(1, 3, 2, dtype=torch.bool), r(2)),
                   lambda m: (r(3, 1, 2, 2), torch.rand(3, 2, 2) > .3, r(1))],
    "PreEmphasis": [lambda m: (r(1),), lambda m: (r(2, 2, 4),)],
    "PowerCompress": [lambda m: (torch.randn(5, dtype=torch.complex128).requires_grad_(),),
                      lambda m: (torch.randn(2, 2, 2, dtype=torch.complex128).requires_grad_(), 1.5, 1e-3)],
    "SISDR": [lambda m: (r(6), r(6)), lambda m: (r(2, 2, 5), r(2, 2, 5), "sum", 1e-2)],
    "ForwardSumLoss": [lambda m: (r(1, 4, 4), I(4), I(4)), lambda m: (r(3, 6, 4), I(1, 4, 2), I(3, 5, 6))],
    "LogMelFloor": [lambda m: (u(.0, .3, 6, 4),), lambda m: (u(.0, 2., 2, 2, 6, 2),)],
    "StatsPooling": [lambda m: (r(1, 2, 4), I(1)), lambda m: (r(3, 1, 4), I(2, 4, 3), 0.1)],
    "frame_energy": [lambda m: (r(9), r(4)), lambda m: (r(2, 2, 8), r(3), 4)],
    "PowerSpectrum": [lambda m: (r(8), True), lambda m: (r(2, 2, 5), True)],
    "BPRLoss": [lambda m: (r(1, 3), r(1, 3), r(1, 3)), lambda m: (r(5, 2), r(5, 2), r(5, 2), 0.0)],
    "FMInteraction": [(lambda m: (r(2, 4),), lambda c: hist(c, 4, 2, bias=False)), (lambda m: (r(1, 6),), lambda c: hist(c, 6, 1))],
    "ListMLE": [lambda m: (r(1, 5), torch.tensor([[2., 1., 2., 0., 4.]], dtype=F64)),
                lambda m: (r(3, 3), torch.tensor([[1., -9., 0.], [-9., -9., -9.], [2., 0., 1.]], dtype=F64), -9.0)],
    "ApproxNDCG": [lambda m: (r(4), torch.tensor([1., 0., 2., 0.], dtype=F64)),
                   (lambda m: (r(2, 2, 3), torch.tensor([[[1., 0., 2.]] * 2] * 2, dtype=F64)), lambda c: c(0.3))],
    "InBatchSoftmax": [lambda m: (r(3, 2), r(3, 2), I(1, 1, 1)),
                       (lambda m: (r(5, 2), r(5, 2), I(1, 2, 2, 4, 1), r(5)), lambda c: c(1.3, False))],
    "embedding_bag_mean": [lambda m: (r(3, 2), I(2, 2, 2, 0), I(0, 1, 4)), lambda m: (r(6, 1), I(5), I(0))],
    "CrossNetLayer": [(lambda m: (r(1, 3),), lambda c: hist(c, 3, 1)), (lambda m: (r(4, 2),), lambda c: hist(c, 2, 3))],
    "GATAggregate": [lambda m: (r(3, 1, 2), r(4, 1), I([0, 0, 1, 1], [1, 1, 0, 1])),
                     lambda m: (r(5, 3, 1), r(3, 3), I([4, 3, 2], [0, 0, 0]))],
    "ChamferDistance": [lambda m: (r(1, 2, 2), r(1, 6, 2)), lambda m: (r(3, 4, 3), r(3, 4, 3))],
    "LaplacianSmoothing": [lambda m: (r(3, 2), I([0, 1], [2, 2])), lambda m: (r(6, 1), I([0, 1, 5, 5, 4, 4, 2], [1, 0, 4, 4, 5, 4, 3]))],
    "segment_logsumexp": [lambda m: (r(4, 1), I(0, 0, 0, 0), 1), lambda m: (r(5, 3), I(3, 1, 0, 2, 1), 4)],
    "PillarScatter": [lambda m: (r(2, 1), I([0, 3, 0], [0, 0, 1]), 1, 4, 2), lambda m: (r(3, 2), I([2, 0, 0], [0, 1, 1], [1, 0, 0]), 3, 2, 2)],
    "GroupRelative": [lambda m: (r(1, 3, 2), r(1, 1, 2), I([[0, 0, 0, -1]])), lambda m: (r(2, 5, 3), r(2, 3, 3), torch.randint(-1, 5, (2, 3, 2)))],
    "BondAngles": [lambda m: (r(3, 3), I([2, 0, 1])), lambda m: (r(6, 3), I([0, 1, 2], [2, 1, 0], [3, 1, 5], [4, 3, 0]))],
    "dihedral": [lambda m: (r(4, 3), I([3, 1, 0, 2])), lambda m: (r(7, 3), I([0, 1, 2, 3], [6, 5, 4, 3], [1, 2, 4, 6]))],
    "CosineCutoffSmearing": [lambda m: (u(.1, 5, 7),), (lambda m: (u(.1, 3, 2, 1, 2),), lambda c: c(3, 2.0).double())],
    "LennardJones": [lambda m: (t([0., 0, 0], [1.1, 0.2, 0.1], [0.3, 1.2, -.4]), I([0, 1], [2, 1]), scalar(1.2), scalar(1.0)),
                     lambda m: (t([.1, .2, .3], [2.8, 0.3, 0.1]), I([0, 1]), scalar(0.5), scalar(0.8), torch.tensor([3., 5., 4.], dtype=F64))],
    "KabschRMSD": [lambda m: (r(2, 5, 3), r(2, 5, 3)), lambda m: (r(2, 2, 4, 3), r(2, 2, 4, 3), 1e-3)],
    "BesselBasis": [(lambda m: (u(.3, 4, 2, 3),), lambda c: c(4, 4).double()), lambda m: (u(.3, 6, 1),)],
    "GroupSoftThreshold": [lambda m: (r(2, 3, 4), scalar(1.1), 1), lambda m: (r(5), scalar(.2), 0)],
    "DequantLinear": [lambda m: (r(4), torch.randint(-8, 8, (3, 4), dtype=torch.int8), r(3, 4), r(3, 4)),
                      lambda m: (r(2, 2, 6), torch.randint(0, 4, (2, 6)), r(2, 1), r(2, 1), r(2))],
    "ResidualCodebook": [(lambda m: (I([[0, 1], [1, 1]], [[0, 0], [1, 0]]),), lambda c: hist(c, 2, 2, 3)),
                         (lambda m: (I(2, 2, 0, 2),), lambda c: hist(c, 4, 3, 2, shared=True))],
    "Sparse24Linear": [(lambda m: (r(4),), lambda c: hist(c, 4, 2)), (lambda m: (r(2, 3, 8),), lambda c: hist(c, 8, 1, bias=False))],
    "ChannelNoiseQuant": [lambda m: (r(2, 4, 3), u(.2, .5, 4), u(-.5, .5, 2, 4, 3)), lambda m: (r(5), u(.2, .5, 5), u(-.5, .5, 5), 2, 0)],
    "Sparsemax": [lambda m: (r(4, 3, 2), 1), lambda m: (r(6),)],
    "StudentTNLL": [lambda m: (r(5), r(5), r(5), u(2, 5, 5)), lambda m: (r(2, 3), scalar(.3), r(3), scalar(4.), "sum")],
    "CRPSGaussian": [lambda m: (r(1), u(.5, 2, 1), r(1)), lambda m: (r(2, 2, 3), u(.5, 2, 2, 2, 3), r(2, 2, 3))],
    "ZIPoissonNLL": [lambda m: (r(5), r(5), I(0, 1, 4, 0, -1)), lambda m: (r(2, 2, 2), r(2, 2, 2), torch.randint(0, 4, (2, 2, 2)), -5)],
    "kl_free_bits": [lambda m: (r(1, 4), r(1, 4)), lambda m: (r(3, 5), r(3, 5), .9)],
    "VonMisesNLL": [lambda m: (r(2, 3), r(2, 3), u(.1, 30, 2, 3)), lambda m: (r(4), scalar(.2), scalar(2.))],
    "interp1d": [lambda m: (u(-1, 2, 2, 3), t(0., 1.), r(2)), lambda m: (scalar(.77), t(-1., .2, .9, 3., 4.), r(5))],
    "TridiagonalSolve": [lambda m: (r(1), u(3, 4, 2), r(1), r(2)), lambda m: (r(2, 2, 2), u(4, 6, 2, 2, 3), r(2, 2, 2), r(2, 2, 3))],
    "LinearScan": [lambda m: (u(.2, .9, 1, 4, 2), r(1, 4, 2)), lambda m: (u(.2, .9, 3, 1, 1), r(3, 1, 1), r(3, 1))],
    "CumulativeTrapezoid": [lambda m: (r(2), r(2)), lambda m: (r(2, 3, 4), r(2, 3, 4))],
}

# modules whose own maker does not fit the shapes above
MORE_MAKE = {"LogMelFloor": logmel}


def main(names):
    bad, kinds = [], Counter()
    for case in cases.CASES:
        name = case["name"]
        kinds[case["kind"]] += 1
        if names and name not in names:
            continue
        try:
            mod = op(name, "right")
            call, params = instance(mod, case)
            args = getattr(cases, case["inputs"])()
            e1, e2 = right_ok(case, call, args, params, "case")
            assert len(MORE[name]) == 2
            for k, item in enumerate(MORE[name]):
                fn, make = item if isinstance(item, tuple) else (item, MORE_MAKE.get(name))
                s(500 + k)
                args = fn(mod)
                call, params = instance(mod, case, make and (lambda c, f=make: f(c).double()))
                right_ok(case, call, args, params, f"further input {k}")
            # only now: a custom op of the same name takes the place of the right one
            mod = op(name, "wrong")
            call, params = instance(mod, case)
            args = getattr(cases, case["inputs"])()
            how = wrong_is_wrong(case, call, args, params)
            print(f"ok  {name}: right {e1:.1g}/{'once' if e2 is None else format(e2, '.1g')}; wrong {how}")
        except Exception as e:  # noqa
            bad.append(name)
            print(f"BAD {name}: {type(e).__name__} {str(e)[:300]}")
    print(f"{len(cases.CASES)} cases, {len(bad)} bad: {bad}")
    for k, n in kinds.most_common():
        print(f"  {n}  {k}")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
