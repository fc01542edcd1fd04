"""Holds every right operator against gradcheck and every wrong one against the right one."""

import collections
import importlib.util
import pathlib
import sys
import warnings

import torch
from torch.autograd import gradcheck, gradgradcheck
from torch.func import functional_call

import cases

torch.set_num_threads(1)
warnings.filterwarnings("ignore")
HERE = pathlib.Path(__file__).parent
D = torch.float64


def load(side, group):
    spec = importlib.util.spec_from_file_location(
        f"{side}_{group}", HERE / side / f"{group}.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


MODS = {
    (s, g): load(s, g)
    for s in ("right", "wrong")
    for g in {c["group"] for c in cases.CASES}
}


def build(case, side, args=None, make=None):
    """A function of flat arguments (the parameters of a module come last)."""
    cls = getattr(MODS[side, case["group"]], case["name"])
    args = getattr(cases, case["inputs"])() if args is None else args
    make = make or case.get("make")
    if not issubclass(cls, torch.nn.Module):
        return cls.apply, args
    module = make(cls) if make else cls()
    names = [n for n, _ in module.named_parameters()]
    k = len(args)

    def f(*flat):
        return functional_call(module, dict(zip(names, flat[k:])), flat[:k])

    return f, tuple(args) + tuple(
        p.detach().clone().requires_grad_() for p in module.parameters()
    )


def diff_args(args):
    return [a for a in args if isinstance(a, torch.Tensor) and a.requires_grad]


def first(case, side):
    """Gradients for fixed cotangents; also whether inputs or cotangents were changed."""
    f, args = build(case, side)
    kept = [a.detach().clone() for a in args if isinstance(a, torch.Tensor)]
    outs = f(*args)
    outs = outs if isinstance(outs, tuple) else (outs,)
    outs = [o for o in outs if o.requires_grad]
    gen = torch.Generator().manual_seed(99)
    cot = [torch.randn(o.shape, generator=gen, dtype=o.dtype) for o in outs]
    cot0 = [c.clone() for c in cot]
    grads = torch.autograd.grad(outs, diff_args(args), cot, allow_unused=True)
    now = [a.detach() for a in args if isinstance(a, torch.Tensor)]
    changed = any(not torch.equal(a, b) for a, b in zip(kept + cot0, now + cot))
    return grads, changed


def second(case, side):
    f, args = build(case, side)
    outs = f(*args)
    outs = outs if isinstance(outs, tuple) else (outs,)
    outs = [o for o in outs if o.requires_grad]
    xs = diff_args(args)
    gen = torch.Generator().manual_seed(98)
    cot = [torch.randn(o.shape, generator=gen, dtype=o.dtype) for o in outs]
    g = torch.autograd.grad(outs, xs, cot, create_graph=True)
    w = [torch.randn(o.shape, generator=gen, dtype=o.dtype) for o in g]
    total = sum((p * q).sum() for p, q in zip(g, w))
    if not total.requires_grad:
        return [None] * len(xs)
    return torch.autograd.grad(total, xs, allow_unused=True)


def gap(a, b):
    """Largest relative difference; None or NaN on one side only is a difference."""
    worst = 0.0
    for p, q in zip(a, b):
        if p is None and q is None:
            continue
        if p is None or q is None:
            t = q if p is None else p
            worst = max(worst, float(t.abs().max() > 1e-9))
            continue
        if p.shape != q.shape or not torch.isfinite(q).all():
            return float("inf")
        worst = max(worst, float((p - q).norm() / p.norm().clamp(min=1e-12)))
    return worst


def extra():
    """Other options and sizes for the right ones: name -> list of (arguments, make)."""
    torch.manual_seed(7)
    c = cases
    r, n, z = c._rand, c._randn, c._crandn
    t = torch.tensor
    e = t([[0, 2, 2], [1, 1, 0]])
    f = lambda *v: t(v, dtype=D)  # noqa: E731
    g = lambda *v: t(v, dtype=D, requires_grad=True)  # noqa: E731
    plain = {
        "GCNPropagate": [(n(3, 2), e), (n(3, 2), e, None, 5), (n(3, 1), e, n(3), 2)],
        "SegmentSoftmax": [(n(4, 1), t([1, 1, 1, 1]), 2), (n(3, 3), t([0, 1, 2]), 3)],
        "SegmentMaxPool": [(n(4, 2), t([0, 1, 0, 1]), 2), (n(2, 1), t([1, 1]), 2)],
        "CsrMatmul": [
            (t([0, 1, 3]), t([1, 0, 1]), n(3), n(2, 2)),
            (t([0, 0, 2]), t([0, 0]), n(2), n(3, 1)),
        ],
        "EdgeGatedMean": [(n(3, 2), n(4, 2), e, 0.1)],
        "EdgeLength": [(n(3, 2), e, 0.1)],
        "EquivariantNormGate": [(n(1, 3, 3), n(3)), (n(3, 1, 2), n(1))],
        "TopKNodes": [(n(4, 2), n(4)), (n(3, 1), n(3), 1.0)],
        "EdgeAttentionLogits": [(n(3, 2, 2), n(3, 2, 2), e, 0.3)],
        "GraphNorm": [(n(4, 2), t([0, 2, 2, 2]), lambda cls: cls(2, 0.1).double())],
        "BlackScholesPrice": [
            (r(3, lo=90.0, hi=110.0), g(100.0), r(3, lo=0.1, hi=0.5), 1.5),
            (g(100.0), r(2, lo=90.0, hi=110.0), r(2, lo=0.2), 0.5, 0.01, True),
        ],
        "ExpectedShortfall": [(n(7, 1),), (n(10, 2), 0.7), (n(5, 2), 0.1)],
        "ZeroCurveDiscount": [(r(2), f(1.0, 2.0), f(0.5, 1.0, 1.3, 2.0, 3.0))],
        "MinVarianceWeights": [
            ((n(3, 3) + 4 * torch.eye(3)).detach().requires_grad_(),)
        ],
        "EwmaVariance": [
            (n(1, 3), g(0.5)[0].detach().requires_grad_(), r(3)),
            (
                n(4),
                g(0.7)[0].detach().requires_grad_(),
                g(0.3)[0].detach().requires_grad_(),
            ),
        ],
        "SharpeRatio": [(n(4, 1),), (n(5, 3), -0.2, 1, False)],
        "BondPrice": [(r(2), n(2, 3), f(1.0, 2.0, 3.0), 1)],
        "ImpliedVolatility": [(g(20.0, 9.0), g(110.0, 95.0), 98.0, 1.5)],
        "MaxDrawdown": [(r(3, 5, lo=1.0, hi=3.0),), (r(1, 2, lo=1.0, hi=2.0),)],
        "LongOnlyProjection": [(n(3),), (r(2, 3, 4),), (n(2, 1),)],
        "CoilFourier": [
            (n(3, 5), z(3, 3, 5), torch.rand(3, 5) > 0.5),
            (z(2, 2), z(1, 2, 2), torch.ones(2, 2).bool()),
        ],
        "ParallelProjector": [(r(5, 3), f(0.3, 1.2), 3), (r(2, 2), f(0.0, 0.7), 5)],
        "WarpImage": [
            (n(1, 1, 3, 5), r(1, 2, 3, 5, lo=-4.0, hi=4.0)),
            (n(2, 3, 2, 2), r(2, 2, 2, 2, lo=-0.7, hi=0.7)),
        ],
        "SoftDiceLoss": [
            (r(1, 2, 4), (torch.rand(1, 2, 4) > 0.5).to(D), 0.1, "none"),
            (r(3, 2, 4), (torch.rand(3, 2, 4) > 0.5).to(D), 0.1, "sum"),
        ],
        "TverskyIndex": [(r(2, 5), (torch.rand(2, 5) > 0.5).to(D))],
        "RichardsonLucyStep": [
            (r(7, lo=0.5), r(7, lo=0.5), f(0.1, 0.6, 0.2, 0.1), 0.01),
            (r(1, 2, 5, lo=0.5), r(1, 2, 5, lo=0.5), f(1.0)),
        ],
        "CrossCorrelation": [(n(4, 2), n(4, 2)), (n(2, 1, 2, 3), n(2, 1, 2, 3))],
        "RootSumSquares": [(n(3, 4),), (z(2, 3), -1), (z(2, 3, 2), 1, True)],
        "BiquadFilter": [(n(1, 2), n(3), g(0.4, -0.1)), (n(3, 1), n(3), n(2))],
        "KSpaceConsistency": [(n(3, 2), n(3, 2), torch.rand(3, 2) > 0.5)],
        "SpringForces": [(n(3, 2), t([[0, 1], [0, 2]]), r(2))],
        "AdvectPeriodic": [(n(3, 2), r(2, 3, 2, lo=-9.0, hi=9.0))],
        "QuatRotate": [(n(1, 4), n(1, 3)), (n(5, 4), n(5, 3))],
        "BallCollider": [(n(5, 3), n(5, 3), lambda cls: cls(1.2, 1).double())],
        "BallisticTracker": [(n(1, 3), n(1, 3), lambda cls: cls(1).double())],
        "SoftDiscs": [(r(1, 2), r(1), (2, 3)), (r(3, 2, hi=4.0), r(3), (3, 2), 1.0)],
        "VolumeRender": [(r(1, 3), r(1, 3, 3), r(1, 3, grad=False))],
        "BoxDistance": [(n(4, 3), r(3, lo=0.3)), (n(3, 1), r(1))],
        "JacobiPressure": [(n(3, 3),), (n(2, 5), (1.0, 2.0), 1)],
        "LambertShade": [(n(3, 3), n(3), r(3), 0.4)],
        "AddRMSNorm": [(n(3), n(3), n(3), 0.1), (n(2, 2), n(2, 2), n(2))],
        "LeanELU": [(n(2, 3, 2), lambda cls: cls()), (n(4), lambda cls: cls(2.0))],
        "SeededDropout": [
            (n(3, 2), lambda cls: cls(0.2, 1)),
            (n(3, 2), lambda cls: cls().eval()),
        ],
        "CausalAttention": [(n(1, 2, 3, 2), n(1, 2, 5, 2), n(1, 2, 5, 4), 0.7, False)],
        "WindowConv1d": [
            (n(1, 2, 6), n(3, 2, 2)),
            (n(2, 1, 8), n(2, 1, 3), None, 3, 2, 2),
            (n(1, 1, 4), n(1, 1, 1), n(1), 1, 2),
        ],
        "StripMaxPool": [(n(2, 2, 7), 3, 1), (n(6), 2), (n(2, 5), 2, 3)],
        "TokenBag": [(t([[1, 1], [0, 2]]), lambda cls: cls(3, 2, 1).double())],
        "MinimalGatedCell": [(n(1, 2), n(1, 2), n(1, 2), n(2, 2), n(2, 2))],
        "PackedSwiGLU": [(n(2, 3, 2),), (n(4),)],
        "SoftQuantize": [(g(-1.2, 0.3, 0.9, 2.2),), (g(0.11, 0.37), 0.5, 6.0)],
    }
    return {
        k: [(a[:-1], a[-1]) if callable(a[-1]) else (a, None) for a in rows]
        for k, rows in plain.items()
    }


def outputs(f, args):
    outs = f(*args)
    outs = outs if isinstance(outs, tuple) else (outs,)
    return [o for o in outs if o.requires_grad]


def grads(f, args, seed=97, strided=False):
    outs = outputs(f, args)
    gen = torch.Generator().manual_seed(seed)
    cot = [torch.randn(o.shape, generator=gen, dtype=D).to(o.dtype) for o in outs]
    if strided:
        cot = [other_layout(c) for c in cot]
    return torch.autograd.grad(outs, diff_args(args), cot, allow_unused=True)


def other_layout(x):
    """The same values in memory laid out otherwise."""
    if x.dim() == 0:
        return x
    if x.dim() == 1:
        out = torch.stack([x, x], dim=1).detach()[:, 0]
    else:
        out = x.detach().transpose(0, -1).contiguous().transpose(0, -1)
    return out.requires_grad_(x.requires_grad)


def check_careful(case, args=None, make=None):
    """Layouts, float32 and inputs that need no gradient."""
    f, full = build(case, "right", args, make)
    ref = grads(f, full)
    tensor = torch.is_tensor
    moved = tuple(other_layout(a) if tensor(a) else a for a in full)
    assert gap(ref, grads(f, moved, strided=True)) < 1e-9, "layout"
    for keep in range(len(ref)):
        some, k = [], -1
        for a in full:
            if tensor(a) and a.requires_grad:
                k += 1
                a = a.detach().clone().requires_grad_(k == keep)
            some.append(a)
        (one,) = grads(f, tuple(some))
        assert gap([ref[keep]], [one]) < 1e-12, "alone"
    small = {D: torch.float32, torch.complex128: torch.complex64}
    low = tuple(
        a.detach().to(small[a.dtype]).requires_grad_(a.requires_grad)
        if tensor(a) and a.dtype in small
        else a
        for a in full
    )
    got = grads(f, low)
    for p, q, a in zip(ref, got, diff_args(low)):
        assert q.dtype == a.dtype
        assert torch.allclose(p, q.to(p.dtype), rtol=5e-3, atol=5e-4), "float32"
    flat = [torch.ones((), dtype=o.dtype).expand(o.shape) for o in outputs(f, full)]
    got = torch.autograd.grad(outputs(f, full), diff_args(full), flat)
    dense = [c.contiguous() for c in flat]
    ref = torch.autograd.grad(outputs(f, full), diff_args(full), dense)
    assert gap(ref, got) < 1e-9, "expanded"


def check_right(case, args=None, make=None):
    f, full = build(case, "right", args, make)
    assert gradcheck(f, full, fast_mode=False), "gradcheck"
    f, full = build(case, "right", args, make)
    try:
        ok = gradgradcheck(f, full)
        why = ""
    except Exception as exc:  # noqa: BLE001
        ok, why = False, str(exc)
    if case["second_order_right"] is True:
        assert ok, "gradgradcheck: " + why
    elif args is None:
        assert not ok, "marked without second order, but gradgradcheck passes"
        once = refuses_second_order(case)
        assert once == (case["second_order_right"] is None), why


def refuses_second_order(case):
    f, full = build(case, "right")
    y = outputs(f, full)[0]
    cot = torch.ones_like(y).requires_grad_()
    g = torch.autograd.grad(y, diff_args(full), cot, create_graph=True)
    try:
        sum(t.sum() for t in g).backward()
    except RuntimeError as exc:
        return "once_differentiable" in str(exc)
    return False


def harm_of_shared_gradient(case):
    """y + d: both branches are handed the same gradient."""
    f, full = build(case, "wrong")
    d = torch.zeros_like(outputs(f, full)[0]).detach().requires_grad_()
    late = d * 1.0
    y = outputs(f, full)[0]
    got, *_ = torch.autograd.grad(y + late, [d, *diff_args(full)], torch.ones_like(y))
    off = float((got - 1.0).norm())
    return f", shared gradient off by {off:.2g}" if off > 1e-3 else ", an input changes"


def check_wrong(case):
    if case["shows"] == "second":
        g = gap(first(case, "right")[0], first(case, "wrong")[0])
        assert g < 1e-12, f"first order differs too: {g}"
        right = second(case, "right")
        try:
            g = gap(right, second(case, "wrong"))
        except RuntimeError as exc:
            return "raises: " + str(exc)[:60]
        assert g > 1e-3, g
        return f"second differs by {g:.2g}"
    right, changed = first(case, "right")
    assert not changed, "the right one changes its inputs"
    try:
        wrong, changed = first(case, "wrong")
    except RuntimeError as exc:
        return "raises: " + str(exc)[:60]
    g = gap(right, wrong)
    assert g > 1e-3 or changed, f"wrong one not seen: {g}"
    extra_word = ", changes a tensor given to it" if changed else ""
    if changed:
        extra_word += harm_of_shared_gradient(case)
    return f"differs by {g:.2g}" + extra_word


def check_forward_same(case):
    outs = []
    for side in ("right", "wrong"):
        f, full = build(case, side)
        o = f(*full)
        outs.append(o if isinstance(o, tuple) else (o,))
    assert all(torch.equal(a, b) for a, b in zip(*outs)), "forwards differ"


def check_against_plain():
    """Forwards that have a counterpart in torch."""
    torch.manual_seed(3)
    lay = MODS["right", "layers"]
    fn = torch.nn.functional
    close = torch.testing.assert_close
    x, w, b = (torch.randn(s, dtype=D) for s in ((2, 3, 11), (4, 3, 3), (4,)))
    for opt in ((1, 0, 1), (2, 1, 1), (3, 2, 2)):
        close(lay.WindowConv1d.apply(x, w, b, *opt), fn.conv1d(x, w, b, *opt))
    close(lay.StripMaxPool.apply(x, 3, 2), fn.max_pool1d(x, 3, 2))
    close(lay.LeanELU(0.5)(x), fn.elu(x, 0.5))
    q, k, v = torch.randn(3, 2, 5, 4, dtype=D)
    ref = fn.scaled_dot_product_attention(q, k, v, is_causal=True)
    close(lay.CausalAttention.apply(q, k, v), ref)
    close(
        lay.AddRMSNorm.apply(q, k, v[0, 0])[0], fn.rms_norm(q + k, (4,), v[0, 0], 1e-6)
    )
    bag = lay.TokenBag(6, 3)
    ids = torch.tensor([[1, 2, 0], [3, 3, 5]])
    ref = fn.embedding_bag(ids, bag.weight, mode="mean", padding_idx=0)
    close(bag(ids), ref)
    gra = MODS["right", "graphnets"]
    y = torch.randn(5, 1, dtype=D)
    zero = torch.zeros(5, dtype=torch.long)
    close(gra.SegmentSoftmax.apply(y, zero, 1), y.softmax(0))
    d = torch.randn(4, 2, dtype=D)
    dense = torch.randn(3, 4, dtype=D).relu()
    csr = dense.to_sparse_csr()
    got = gra.CsrMatmul.apply(csr.crow_indices(), csr.col_indices(), csr.values(), d)
    close(got, dense @ d)
    med = MODS["right", "medical"]
    img, flow = torch.randn(2, 1, 4, 5, dtype=D), torch.randn(2, 2, 4, 5, dtype=D)
    yy = torch.arange(4, dtype=D)[:, None] + flow[:, 0]
    xx = torch.arange(5, dtype=D) + flow[:, 1]
    grid = torch.stack([xx / 2 - 1, yy / 1.5 - 1], -1)
    ref = fn.grid_sample(img, grid, padding_mode="border", align_corners=True)
    close(med.WarpImage.apply(img, flow), ref)
    price = torch.tensor([10.0], dtype=D)
    fin = MODS["right", "finance"]
    vol = fin.ImpliedVolatility.apply(price, price * 10, 100.0, 0.5)
    close(fin.BlackScholesPrice.apply(price * 10, price * 10, vol, 0.5), price)


def check_files():
    for group in sorted({c["group"] for c in cases.CASES}):
        texts = [
            (HERE / s / f"{group}.py").read_text().split("\n")
            for s in ("right", "wrong")
        ]
        assert len(texts[0]) == len(texts[1]), group
        assert sum(a != b for a, b in zip(*texts)) == 10, group
        assert sum(c["group"] == group for c in cases.CASES) == 10, group


def main():
    check_files()
    check_against_plain()
    more, bad = extra(), 0
    for case in cases.CASES:
        try:
            check_forward_same(case)
            check_right(case)
            check_careful(case)
            assert more[case["name"]], "no second set"
            for args, make in more[case["name"]]:
                check_right(case, args, make)
                check_careful(case, args, make)
            print(f"ok   {case['group']}.{case['name']}: {check_wrong(case)}")
        except Exception as exc:  # noqa: BLE001
            bad += 1
            print(
                f"BAD  {case['group']}.{case['name']}: {type(exc).__name__}: {str(exc)[:700]}"
            )
    print(dict(collections.Counter(c["kind"] for c in cases.CASES)))
    print(f"{len(cases.CASES)} cases, {bad} bad")
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
