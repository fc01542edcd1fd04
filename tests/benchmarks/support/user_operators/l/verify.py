"""Checks every case by central differences of its own: the right operator agrees with them, the wrong one does not.

First order: the vector-Jacobian product with random cotangents.  Second order: differences of that product, with
respect to inputs and cotangents; the wrong operator's double backward is held against the right one's differences.  Each right operator is also tried at two further inputs (MORE), with cotangents and
inputs of another memory layout, with single inputs requiring grad, and in float32.
"""
import importlib.util
import os
import sys
from collections import Counter

import torch
from torch.func import functional_call

torch.set_num_threads(1)
HERE = os.path.dirname(os.path.abspath(__file__))
H = 1e-6
TOL, FAULT = 2e-6, 1e-2


def load(path, name):
    spec = importlib.util.spec_from_file_location(name, path)
    mod = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(mod)
    return mod


cases = load(os.path.join(HERE, "cases.py"), "cases")
from_cases = vars(cases)
F64, _s, _r, _u, _c, _t, _set = (from_cases[k] for k in ("F64", "_s", "_r", "_u", "_c", "_t", "_set"))


class Problem:
    """fn over the differentiable tensors only: inputs that require grad, then parameters."""

    def __init__(self, obj, args, make=None):
        self.args = list(args)
        self.pos = [i for i, a in enumerate(args) if isinstance(a, torch.Tensor) and a.requires_grad]
        self.mod, params, self.names = None, [], []
        if isinstance(obj, type) and issubclass(obj, torch.nn.Module):
            self.mod = make(obj) if make else obj().double()
            self.names = [n for n, _ in self.mod.named_parameters()]
            params = [p.detach().clone().requires_grad_() for _, p in self.mod.named_parameters()]
            self.call = None
        else:
            self.call = obj.apply if isinstance(obj, type) else obj
        self.ins = [args[i] for i in self.pos] + params

    def outs(self, ins, every=False):
        full = list(self.args)
        for i, t in zip(self.pos, ins):
            full[i] = t
        if self.mod is not None:
            out = functional_call(self.mod, dict(zip(self.names, ins[len(self.pos):])), tuple(full))
        else:
            out = self.call(*full)
        outs = list(out) if isinstance(out, tuple) else [out]
        return outs if every else [o for o in outs if o.is_floating_point() or o.is_complex()]

    def leaves(self):
        return [t.detach().clone().requires_grad_() for t in self.ins]

    def grad(self, ins, gs, create_graph=False):
        outs = self.outs(ins)
        used = [(o, g) for o, g in zip(outs, gs) if o.requires_grad]
        if not used:
            return [torch.zeros_like(t) for t in ins]
        res = torch.autograd.grad([o for o, _ in used], ins, [g for _, g in used], create_graph=create_graph,
                                  allow_unused=True)
        return [torch.zeros_like(t) if r is None else r for r, t in zip(res, ins)]


def dot(a, b):
    """Real inner product, the one torch's complex gradients belong to."""
    return sum((x.conj() * y).real.sum() if x.is_complex() else (x * y).sum() for x, y in zip(a, b))


def differences(f, ins):
    """Gradient of the scalar f(list of tensors), by central differences in every (real) coordinate."""
    base = [t.detach().clone() for t in ins]
    res = []
    for t in base:
        g = torch.zeros_like(t)
        for idx in range(t.numel()):
            where = tuple(int(v) for v in torch.unravel_index(torch.tensor(idx), t.shape)) if t.dim() else ()
            old = t[where].clone()
            for unit in ((1.0, 1j) if t.is_complex() else (1.0,)):
                t[where] = old + H * unit
                up = float(f([b.clone() for b in base]))
                t[where] = old - H * unit
                down = float(f([b.clone() for b in base]))
                t[where] = old
                g[where] += unit * (up - down) / (2 * H)
        res.append(g)
    return res


def error(a, b):
    """Worst relative error over the inputs; tiny gradients are measured against the largest one."""
    top = max([x.norm().item() for x in a + b if x.numel()], default=0.0)
    worst = 0.0
    for x, y in zip(a, b):
        if not torch.isfinite(torch.view_as_real(y) if y.is_complex() else y).all():
            return float("inf")
        n = max(x.norm().item(), y.norm().item())
        if n > 1e-7 * max(top, 1.0):
            worst = max(worst, (x - y).norm().item() / n)
    return worst


def cotangents(p, seed=7):
    with torch.no_grad():
        outs = p.outs([t.clone() for t in p.leaves()])
    torch.manual_seed(seed)
    return [torch.randn_like(o) for o in outs]


def first_order(p):
    gs = cotangents(p)
    ins = p.leaves()
    before = [t.detach().clone() for t in ins + gs]
    try:
        ana = p.grad(ins, gs)
    except Exception as e:  # noqa
        return float("inf"), f"raises {type(e).__name__}: {e}"
    assert all(torch.equal(a, b.detach()) for a, b in zip(before, ins + gs)), "inputs or cotangents changed"
    with torch.no_grad():
        num = differences(lambda xs: dot(gs, p.outs(xs)), ins)
    return error(num, ana), ""


def second_order(p):
    gs = cotangents(p)
    ins = p.leaves()
    torch.manual_seed(8)
    vs = [torch.randn_like(t) for t in ins]
    k = len(ins)

    def scalar(xs):
        xs = [t.requires_grad_() for t in xs]
        return dot(vs, p.grad(xs[:k], xs[k:])).detach()

    num = differences(scalar, ins + gs)
    try:
        return num, double_backward(p, ins, gs, vs), ""
    except Exception as e:  # noqa
        return num, None, f"raises {type(e).__name__}: {e}"


def double_backward(p, ins, gs, vs):
    k = len(ins)
    full = ins + [g.clone().requires_grad_() for g in gs]
    s = dot(vs, p.grad(full[:k], full[k:], create_graph=True))
    if s.requires_grad:
        ana = torch.autograd.grad(s, full, allow_unused=True)
        ana = [torch.zeros_like(t) if a is None else a.detach() for a, t in zip(ana, full)]
    else:
        ana = [torch.zeros_like(t) for t in full]
    return ana


def prohibits_double(p):
    ins = p.leaves()
    gs = [g.requires_grad_() for g in cotangents(p)]
    first = p.grad(ins, gs, create_graph=True)
    try:
        sum(dot([f], [f.detach() + 1]) for f in first if f.requires_grad).backward()
    except RuntimeError as e:
        return "once_differentiable" in str(e)
    return False


def layouts(p):
    """Largest change of the gradients for other strides, expanded cotangents, and single inputs."""
    def strided(t):
        s = torch.empty(t.shape + (2,), dtype=t.dtype)[..., 0].copy_(t)
        if t.dim() > 1:
            s = s.transpose(0, -1).contiguous().transpose(0, -1)
        return s
    gs = cotangents(p)
    ref = p.grad(p.leaves(), gs)
    worst = error(ref, p.grad([strided(t.detach()).requires_grad_() for t in p.leaves()], [strided(g) for g in gs]))
    ones = [torch.ones((), dtype=g.dtype).expand(g.shape) for g in gs]
    worst = max(worst, error(p.grad(p.leaves(), [o.contiguous() for o in ones]), p.grad(p.leaves(), ones)))
    for i in range(len(ref)):
        ins = [t.detach().requires_grad_(j == i) for j, t in enumerate(p.leaves())]
        outs = p.outs(ins)
        used = [(o, g) for o, g in zip(outs, gs) if o.requires_grad]
        if used:
            one, = torch.autograd.grad([o for o, _ in used], ins[i:i + 1], [g for _, g in used], allow_unused=True)
            worst = max(worst, error([ref[i]], [torch.zeros_like(ref[i]) if one is None else one])
                        if ref[i].norm() > 1e-7 else 0.0)
    return worst


def single_precision(p):
    """Relative error of the float32 (complex64) gradients against the float64 ones."""
    low = {torch.float64: torch.float32, torch.complex128: torch.complex64}
    cast = lambda t: t.detach().to(low.get(t.dtype, t.dtype))
    gs = cotangents(p)
    ref = p.grad(p.leaves(), gs)
    keep = p.args, p.mod
    p.args = [cast(a) if isinstance(a, torch.Tensor) else a for a in p.args]
    if p.mod is not None:
        p.mod.float()
    try:
        got = p.grad([cast(t).requires_grad_() for t in p.leaves()], [cast(g) for g in gs])
    finally:
        p.args = keep[0]
        if p.mod is not None:
            p.mod.double()
    return error(ref, [g.to(r.dtype) for g, r in zip(got, ref)])


def spd(n, dtype=F64):
    a = torch.randn(n, n, dtype=dtype)
    return (a @ a.mH + torch.eye(n)).requires_grad_()


class Config:
    def __init__(self, **kw):
        vars(self).update(kw)


I = torch.tensor
MORE = {  # NAME: two further inputs, each (args) or (args, make)
    "AlibiAttention": [lambda: (_r(1, 3, 2, 2), _r(1, 3, 4, 2), _r(1, 3, 4, 1), _r(3), False, 0.3),
                       lambda: (_r(2, 1, 3, 3), _r(2, 1, 3, 3), _r(2, 1, 3, 3), _r(1))],
    "rotary_embed": [lambda: (_r(4, 2), I([3, 1, 0, 7])), lambda: (_r(1, 2, 2, 8), I([5, 6]), 100.0, False)],
    "CausalLinearAttention": [lambda: (_r(1, 1, 2), _r(1, 1, 2), _r(1, 1, 4)), lambda: (_r(3, 5, 1), _r(3, 5, 1), _r(3, 5, 3))],
    "Sparsemax": [lambda: (_r(5),), lambda: (_r(2, 3, 4), 1)],
    "grouped_query_scores": [lambda: (_r(1, 3, 2, 4), _r(1, 1, 5, 4)), lambda: (_r(2, 2, 1, 3), _r(2, 2, 2, 3), -1.5)],
    "DiagonalSSMScan": [lambda: (_r(3, 1, 2), _r(2), _r(2)), lambda: (_r(1, 6, 2), _r(2), _r(2), _r(1, 2))],
    "MinGRUScan": [lambda: (_r(1, 1, 4), _r(1, 1, 4), _r(1, 4)), lambda: (_r(3, 5, 1), _r(3, 5, 1), _r(3, 1))],
    "FusedLSTMCell": [lambda: ((_r(1, 4), _r(1, 2), _r(1, 2)), lambda c: c(4, 2).double()),
                      lambda: ((_r(4, 1), _r(4, 3), _r(4, 3)), lambda c: c(1, 3, -0.5).double())],
    "SelectiveScan": [lambda: ((_r(1, 2, 2), _r(1, 2, 2), _r(1, 2, 3), _r(1, 2, 3)), lambda c: c(Config(d_inner=2, d_state=3)).double()),
                      lambda: ((_r(3, 5, 1), _r(3, 5, 1), _r(3, 5, 1), _r(3, 5, 1)), lambda c: c(Config(d_inner=1, d_state=1)).double())],
    "LengthMaskedEMA": [lambda: (_r(1, 5, 1), I([3])), lambda: (_r(4, 3, 2), I([3, 1, 2, 3]), 0.0)],
    "AlphaComposite": [lambda: (_u(0, 3, 1, 1), _r(1, 1, 3), _u(0, 1, 1, 1)), lambda: (_u(0, 5, 4, 8), _r(4, 8, 1), _u(0, 1, 4, 8))],
    "BilinearTexture": [lambda: (_r(2, 2, 1), _u(0, 1, 5, 2)), lambda: (_r(5, 3, 3), _u(-1, 2, 4, 2))],
    "FaceNormals": [lambda: (_r(3, 3), I([[0, 1, 2]]), False), lambda: (_r(6, 3), torch.randperm(6)[:3].repeat(4, 1), True, 10.0)],
    "srgb_to_linear": [lambda: (_u(-1, 2, 3, 2, 2),), lambda: (_u(0, 0.1, 7),)],
    "PinholeProjection": [lambda: ((_r(3),), lambda c: c((3.0, 3.0), (0.0, 0.0)).double()),
                          lambda: ((_u(-2, 2, 5, 3),), lambda c: c((1.0, 4.0), (8.0, 6.0), near=1.0).double())],
    "QuaternionRotate": [lambda: (_r(4), _r(5, 3)), lambda: (_r(2, 3, 4), _r(3))],
    "SO3Exp": [lambda: (_r(3),), lambda: ((torch.randn(2, 2, 3, dtype=F64) * 3).requires_grad_(),)],
    "RiccatiStep": [lambda: (_r(2, 2), _r(2, 1), spd(2), spd(2), spd(1)),
                    lambda: (_r(2, 2, 2), _r(2, 2, 3), torch.stack([spd(2)] * 2).detach().requires_grad_(), _r(2, 2, 2),
                             torch.stack([spd(3), spd(3)]).detach().requires_grad_())],
    "RelaxedLogBarrier": [lambda: (_u(-1, 1, 5), 0.2, "none"), lambda: (_u(-1, 1, 2, 1, 3), 0.1, "sum")],
    "GAEAdvantage": [lambda: (_r(1, 3), _r(2, 3), I([[True, False, False]])),
                     lambda: (_r(6, 1), _r(7, 1), torch.rand(6, 1) > 0.6, 0.8, 1.0)],
    "BlackScholesPrice": [lambda: (_u(90, 110, 2, 2), _u(90, 110, 2, 2), _u(0.1, 1, 2, 2), _u(0, 0.1, 2, 2), _u(0.1, 0.6, 2, 2)),
                          lambda: tuple(_u(0.5, 1.5, 3) for _ in range(5)) + (True,)],
    "GarchNLL": [lambda: ((_r(3, 1),), lambda c: c().double()), lambda: ((_r(1, 9),), lambda c: c(0.2, 0.3, 0.4, 2.0).double())],
    "SharpeLoss": [lambda: (_r(2), _r(4, 2)), lambda: (_r(5), _r(9, 5), 0.1, 0)],
    "ewma_variance": [lambda: (_r(1),), lambda: (_r(2, 1, 6), 0.5)],
    "ExpectedShortfall": [lambda: (_r(9),), lambda: (_r(2, 5, 3), 0.5, 1)],
    "TverskyLoss": [lambda: (_u(0, 1, 1, 2, 5), (torch.rand(1, 2, 5) > 0.5).double()),
                    lambda: (_u(0, 1, 3, 1, 2, 2, 2), torch.rand(3, 1, 2, 2, 2) > 0.5, 0.9, 0.2, 1e-3)],
    "GeneralizedDiceLoss": [lambda: ((_u(0, 1, 1, 2, 6), torch.randint(0, 2, (1, 6))), lambda c: c().double()),
                            lambda: ((_u(0, 1, 2, 4, 3), I([[0, -1, 3], [1, 1, -1]])), lambda c: c(-1, 1.0).double())],
    "LocalNCC": [lambda: (_r(2, 1, 4, 3), _r(2, 1, 4, 3), 5, 1e-3), lambda: (_r(1, 1, 3, 6), _r(1, 1, 3, 6), 3)],
    "SoftHistogram": [lambda: (_u(0, 1, 1, 5),), lambda: (_u(-2, 5, 3, 4), 4, 0.0, 4.0)],
    "KSpaceConsistency": [lambda: ((_c(1, 4, 4), _c(1, 4, 4), torch.rand(1, 4, 4) > 0.3), lambda c: c(0.0).double()),
                          lambda: ((_c(2, 2, 3), _c(2, 2, 3), torch.rand(2, 2, 3) > 0.5), lambda c: c(2.5).double())],
    "SpringForces": [lambda: (_r(2, 3), I([[1, 0]]), _r(1), _r(1)), lambda: (_r(5, 3), I([[0, 1], [0, 1], [4, 2], [3, 1], [2, 4]]), _r(5), _r(5))],
    "LennardJonesPBC": [lambda: (_t([0.1, 0.2], [3.2, 0.4], [1.5, 1.6]), [3.4, 3.6], 1.7),
                        lambda: ((torch.cartesian_prod(*[torch.arange(2.0, dtype=F64)] * 3) * 1.2 + 0.03).requires_grad_(), (5.0, 5.5, 6.0), 2.5, 0.7, 1.1)],
    "heat_step": [lambda: (_r(1, 5, 4), _r(5, 4)), lambda: (_r(3, 2, 2), _r(2, 2), 0.5, "insulated")],
    "UpwindAdvection": [lambda: ((_r(4),), lambda c: _set(c(4), velocity=[1.0, -1.0, 0.5, -0.2])),
                        lambda: ((_r(2, 2, 3),), lambda c: _set(c(3, 4, 0.3), velocity=[-0.7, 0.4, 0.9]))],
    "TridiagonalSolve": [lambda: (_r(0), _u(1, 2, 1), _r(0), _r(1)), lambda: (_r(2, 1, 4), _u(4, 6, 2, 1, 5), _r(2, 1, 4), _r(2, 1, 5))],
    "SinkhornNormalize": [lambda: (_r(3, 3),), lambda: (_r(1, 2, 2, 5), 1, 2.0)],
    "wasserstein_1d": [lambda: (_r(5), _r(5), 1.0), lambda: (_r(2, 2, 4), _r(2, 2, 4), 3.0)],
    "ContrastiveMarginLoss": [lambda: ((_r(3), _r(3), I(False)), lambda c: c(4.0).double()),
                              lambda: ((_r(2, 3, 4), _r(2, 3, 4), torch.rand(2, 3) > 0.5), lambda c: c(2.0, 0.1).double())],
    "PairwiseDistance": [lambda: (_r(1, 4), _r(3, 4)), lambda: (_r(4, 2), _r(4, 2))],
    "ArcFaceMargin": [lambda: ((_r(5, 4), I([0, 1, 0, 1, 0])), lambda c: c(4, 2, Config(scale=10.0, margin=0.3, easy_margin=True)).double()),
                      lambda: ((_r(4, 2), I([2, 1, 0, 2])), lambda c: c(2, 3, Config(scale=4.0, margin=1.2, easy_margin=False)).double())],
    "SoftDTW": [lambda: (_u(0, 1, 1, 1, 1),), lambda: (_u(0, 3, 2, 2, 5), 2.0)],
    "crps_gaussian": [lambda: (_r(4), _u(0.2, 2, 4), _r(4), "none"), lambda: (_r(1, 2, 2), _u(0.2, 2, 1, 2, 2), _r(1, 2, 2), "sum")],
    "TweedieDeviance": [lambda: (_r(2, 3), _u(0, 2, 2, 3)), lambda: (_r(4), _u(0, 2, 4), 1.9, torch.rand(4, dtype=F64))],
    "MASELoss": [lambda: (_r(1, 4), _r(1, 4), _r(1, 5)), lambda: (_r(3, 1), _r(3, 1), _r(3, 6), 5)],
    "OrdinalLink": [lambda: ((_r(2, 3),), lambda c: _set(c(2), raw=[0.3])), lambda: ((_r(1),), lambda c: _set(c(4), raw=[0.5, -2.0, 1.0]))],
    "CircularCorrelation": [lambda: (_c(1), _c(1)), lambda: (_c(2, 2, 6), _c(2, 2, 6))],
    "RFFTMagnitude": [lambda: (_r(8),), lambda: (_r(2, 2, 5), 0.1)],
    "to_polar": [lambda: (_c(5),), lambda: (_c(2, 1, 3),)],
    "MVDRWeights": [lambda: (spd(4, torch.complex128), _c(4)), lambda: (_c(2, 2, 2), _c(2, 2), 3.0)],
    "FrequencyShift": [lambda: ((_c(5),), lambda c: c().double()), lambda: ((_c(2, 2, 3),), lambda c: c(-1.2, 2.0).double())],
}


def report(case):
    name = case["name"]
    seen, outputs = {}, {}
    for side in ("right", "wrong"):
        obj = getattr(load(os.path.join(HERE, side, name + ".py"), f"{side}_{name}"), name)
        build = lambda: Problem(obj, getattr(cases, case["inputs"])(), case.get("make"))
        p = build()
        with torch.no_grad():
            outputs[side] = [o.clone() for o in p.outs(p.leaves(), every=True)]
        e1, note = first_order(build())
        e2 = None
        if case["second_order_right"] is None:
            assert side == "wrong" or prohibits_double(build()), "double backward not prohibited"
        else:
            num, ana, note2 = second_order(build())
            if side == "right":
                assert not note2, note2
                truth = num
            e2 = error(truth, ana) if ana else float("inf")  # against the differences of the right gradient
            if case["shows"] == "second" and side == "wrong":
                e2 = min(e2, error(num, ana) if ana else float("inf"))
        seen[side] = (e1, e2)
        if side == "right":
            assert not note, note
            assert e1 < TOL, f"right: first order off by {e1:.2g}"
            assert e2 is None or e2 < 50 * TOL, f"right: second order off by {e2:.2g}"
            for k, more in enumerate(MORE[name]):
                torch.manual_seed(1000 + k)
                m = more()
                args, make = m if case["entry"] == "module" else (m, None)

                def fresh():
                    torch.manual_seed(2000 + k)
                    return Problem(obj, args, make)
                m1, note = first_order(fresh())
                assert not note and m1 < TOL, f"right: further input {k}: first order off by {m1:.2g} {note}"
                if e2 is not None:
                    num, ana, note2 = second_order(fresh())
                    assert not note2, note2
                    m2 = error(num, ana)
                    assert m2 < 50 * TOL, f"right: further input {k}: second order off by {m2:.2g}"
                assert layouts(fresh()) < 1e-9, f"right: further input {k}: depends on the layout"
            lay, low = layouts(build()), single_precision(build())
            assert lay < 1e-9, f"right: depends on the layout, {lay:.2g}"
            assert low < 1e-3, f"right: float32 off by {low:.2g}"
    w1, w2 = seen["wrong"]
    o1, o2 = w1 > FAULT, w2 is not None and w2 > FAULT
    if case["shows"] == "second":
        assert w1 < TOL, f"wrong: first order off too, {w1:.2g}"
    want = {"first": o1, "second": o2, "both": o1 and o2}[case["shows"]]
    assert want, f"wrong: shows={case['shows']}, but first {w1:.2g}, second {w2}"
    assert all(torch.equal(a, b) for a, b in zip(outputs["right"], outputs["wrong"])), "forward differs"
    f = lambda v: "-" if v is None else f"{v:.1e}"
    print(f"ok {name:24s} right {f(seen['right'][0])} / {f(seen['right'][1]):8s} wrong {f(w1)} / {f(w2)}", flush=True)


if __name__ == "__main__":
    only, bad, kinds, orders = sys.argv[1:], [], Counter(), Counter()
    for case in cases.CASES:
        if only and case["name"] not in only:
            continue
        kinds[case["kind"]] += 1
        orders[case["shows"]] += 1
        try:
            report(case)
        except Exception as e:  # noqa
            bad.append(case["name"])
            print(f"BAD {case['name']}: {type(e).__name__}: {str(e)[:400]}", flush=True)
    print(f"{sum(kinds.values())} cases, {len(bad)} bad: {bad}; {dict(orders)}")
    for k, n in kinds.most_common():
        print(f"  {n}  {k}")
    sys.exit(bool(bad))
