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


def first(case, side, only=None):
    """Gradients for fixed cotangents; also whether inputs or cotangents were changed."""
    f, args = build(case, side)
    kept = [a.detach().clone() for a in args if isinstance(a, torch.Tensor)]
    outs = f(*args)
    outs = outs if isinstance(outs, tuple) else (outs,)
    outs = [o for o in outs if o.requires_grad]
    outs = outs if only is None else [outs[only]]
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
    """Other options and sizes for the right ones: name -> list of arguments.

    An item is a tuple, or (tuple, make) for a module that needs to be made in another way.
    """
    torch.manual_seed(7)
    c = cases
    r, n, t = c._rand, c._randn, torch.tensor

    def norm5(cls):
        return cls(5, eps=1e-6).double()

    lo = n(4, 2).detach()
    far = torch.cat([lo, lo + 0.5 + torch.rand(4, 2, dtype=D)], 1).requires_grad_()
    near = lo + 0.1 * torch.randn(4, 2, dtype=D)
    near = torch.cat([near, near + 0.5 + torch.rand(4, 2, dtype=D)], 1)
    return {
        "PinholeProject": [
            (c._points(3, 0.1, 2.0), c._tensor([1.0, 2.0, 0.0, 0.3])),
            (c._points(5, 3.0, 9.0), n(4, grad=False), 1.0),
        ],
        "BilinearFlowWarp": [
            (n(1, 1, 4, 2), c._flow(1, 4, 2)),
            (n(2, 3, 3, 3), c._flow(2, 3, 3)),
        ],
        "VoxelMeanPool": [(n(4, 1), t([1, 1, 1, 1]), 2), (n(3, 2), t([-1, -1, 0]), 1)],
        "FaceNormalArea": [(n(3, 3), t([[2, 0, 1]])), (n(4, 3), t([[0, 1, 2]] * 2))],
        "ChamferNearest": [(n(2, 2), n(5, 2)), (n(4, 1), n(1, 1))],
        "TsdfTruncate": [
            (r(6, lo=-0.2, hi=0.2), r(6)),
            (r(2, 3, 3, lo=-3, hi=3), r(2, 1, 1), 2.0),
        ],
        "EikonalPenalty": [
            (n(4, 2), t([True, False, True, True]), 0.5, "none"),
            (n(2, 2, 3), t([[True, False], [False, False]]), 1.0, "sum"),
            (n(2, 3), t([False, False])),
        ],
        "QuaternionRotate": [(n(1, 4), n(1, 5, 3)), (n(3, 4), n(3, 1, 3, grad=False))],
        "AlphaComposite": [
            (r(2, 3), r(2, 3), r(2, 3, 3)),
            (r(1, 1), r(1, 1), r(1, 1, 3), r(3)),
        ],
        "RadialDistortion": [((n(2, 3, 2),), lambda cls: cls(0.5, 0.1).double())],
        "HeteroscedasticNLL": [(n(3, 5), n(3, 5), n(3)), (n(4, 1), n(4, 1), n(4))],
        "KLDiagGaussian": [
            (n(2, 5), n(2, 5), n(2, 5), n(2, 5), "none"),
            (n(4, 1), n(4, 1), n(4, 1), n(4, 1), "sum"),
        ],
        "RelaxedCategorical": [(n(2, 2, 3), r(2, 2, 3, lo=0.1, hi=0.9, grad=False))],
        "StudentTLogProb": [(n(5), r(1, lo=2.0, hi=3.0)), (n(3), r(2, 1, lo=1.0))],
        "HmmLogLikelihood": [
            (
                c._log_simplex(2),
                c._log_simplex(2, 2),
                c._log_simplex(2, 2),
                t([1, 1, 1]),
            ),
            (c._log_simplex(4), c._log_simplex(4, 4), c._log_simplex(4, 3), t([2])),
        ],
        "GaussianCopulaLogDensity": [(r(2, 2, lo=0.2, hi=0.8), c._corr(2))],
        "TruncNormRsample": [
            (r(5, lo=0.2, hi=0.8), n(5), r(5, lo=0.5), 0.0, 0.7),
            (r(2, 3, lo=0.2, hi=0.8, grad=False), n(2, 1), r(1, lo=0.8), -2.0, 0.0),
        ],
        "DirichletLogNorm": [
            (r(4, lo=0.5, hi=2.0),),
            (r(2, 3, 4, lo=0.5, hi=2.0), 1),
            (r(2, 5, lo=0.3), -1),
        ],
        "ZeroInflatedPoissonNLL": [(n(2, 2), n(2, 2), t([[0, 2], [4, 0]], dtype=D))],
        "ComplexNormalLogProb": [(c._crandn(2, 2), c._crandn(2, 2), r(2, lo=1.0))],
        "RankNetLoss": [(n(4), t([1, 0, 0, 1])), (n(3), t([1, 1, 1]), 2.0)],
        "ClipContrastive": [(n(2, 5), n(2, 5), c._tensor(-0.3))],
        "SoftDiceLoss": [
            (n(3, 5), (torch.rand(3, 5) > 0.5).long()),
            (n(1, 4), torch.zeros(1, 4, dtype=D), 0.3),
        ],
        "FocalLoss": [
            (n(3, 5), t([4, 0, 1])),
            (n(4, 2), t([0, 1, -1, 1]), 1.0, -1),
            (n(2, 3), t([0, -100]), 3.5),
        ],
        "GIoULoss": [(far, near), (far, near.flip(0), "mean")],
        "DistillKL": [(n(2, 3), n(2, 3, grad=False)), (n(4, 2), n(4, 2).detach(), 1.0)],
        "UncertaintyWeighting": [
            (n(1), c._tensor(0.5)),
            (n(2), c._tensor(1.5), c._tensor(0.2, grad=False)),
        ],
        "CenterLoss": [((n(3, 2), t([0, 0, 4])), lambda cls: cls(5, 2).double())],
        "LovaszHinge": [
            (n(5), t([0, 0, 0, 0, 0])),
            (n(6), t([1, 1, 0, 1, 1, 0])),
            (n(3), t([1, 1, 1])),
        ],
        "LabelSmoothCE": [
            (n(3, 5), t([4, 4, 0])),
            (n(2, 3), t([1, 2]), r(3, grad=False), 0.0),
        ],
        "RMSNorm": [((n(4, 5),), norm5), ((n(5),), norm5)],
        "SwiGLU": [(n(7), n(7)), (n(2, 1, 3), n(2, 1, 3))],
        "RotaryEmbed": [(n(1, 2, 6), *c._tables(2, 6)), (n(4, 2), *c._tables(4, 2))],
        "TopKCombine": [
            (n(1, 4, 2), r(1, 4, 1), t([[[1], [0], [3], [1]]])),
            (n(3, 6, 1), r(3, 2, 3), torch.randint(0, 4, (3, 2, 3))),
        ],
        "VarlenAttention": [
            (n(5, 2), n(5, 2), n(5, 3), [0, 1, 5]),
            (n(4, 4), n(4, 4), n(4, 4), (0, 2, 2, 4), True, 0.3),
        ],
        "GroupDequantLinear": [
            (
                n(2, 2, 4),
                torch.randint(-8, 8, (5, 4), dtype=torch.int8),
                r(5, 2),
                torch.zeros(5, 2, dtype=torch.int8),
                None,
                2,
            ),
            (
                n(3, 4),
                torch.randint(-8, 8, (2, 4), dtype=torch.int8),
                r(2, 1, grad=False),
                torch.ones(2, 1, dtype=torch.int8),
                n(2),
                4,
            ),
        ],
        "AddLayerNorm": [
            (n(2, 3, 4), n(2, 3, 4), n(4), n(4), 0.1),
            (n(1, 3), n(1, 3), n(3), n(3)),
        ],
        "SoftCap": [
            ((n(5),), lambda cls: cls(5.0)),
            ((n(2, 1),), lambda cls: cls(0.7)),
        ],
        "AdamStep": [(n(2, 2), n(2, 2), n(2, 2), r(2, 2, lo=0.1), 1, 0.5)],
        "RepeatKV": [(n(2, 3, 1, 2), 2), (n(1, 1, 3, 1), 4), (n(1, 2, 2, 2), 1)],
        "LinearSolve": [
            (c._matrix(3, 2.0), n(3, 1)),
            (c._matrix(2, 2.0), n(2, 3), True),
        ],
        "DepressedCubicRoot": [
            (r(2, 3, lo=0.2, hi=4.0), n(2, 3)),
            (r(1, lo=1), n(1), 80),
        ],
        "LinearInterp1d": [
            (c._tensor([[-1.0, 0.3], [0.7, 2.5]]), t([0.0, 0.5, 1.0], dtype=D), n(3)),
            (c._tensor([0.1, 0.2, 7.0]), t([0.0, 2.0], dtype=D), n(2), "linear"),
        ],
        "CumulativeTrapezoid": [(n(4), n(4)), (n(2, 2, 3), r(3)), (n(1, 2), n(2))],
        "SpectralFilter": [
            (n(3, 6), c._crandn(4)),
            (n(2, 1), c._crandn(1)),
            (n(1, 2), c._crandn(2)),
        ],
        "TableLookup2d": [
            (n(2, 2), r(3, lo=0.1, hi=0.9), r(3, lo=0.1, hi=0.9)),
            (n(3, 6), r(4, lo=1.1, hi=1.9), r(4, lo=4.1, hi=4.9)),
        ],
        "LambertW0": [(r(2, 3, lo=-0.3, hi=30.0),), (c._tensor([0.0, -0.05]),)],
        "HarmonicPhase": [(r(3, hi=2.0), r(1), r(1), r(1), 0.5)],
        "SpdSqrt": [(c._spd(2),), (c._spd(4),)],
        "LogDiffExp": [
            (r(3, 2, lo=1.0), r(2, hi=0.9)),
            (r(1, lo=2.0, hi=3.0), r(2, 2)),
        ],
    }


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
    y = f(*full)
    (y,) = y if isinstance(y, tuple) else (y,)
    cot = torch.ones_like(y).requires_grad_()
    g = torch.autograd.grad(y, diff_args(full), cot, create_graph=True)
    try:
        sum(t.sum() for t in g).backward()
    except RuntimeError as exc:
        return "once_differentiable" in str(exc)
    return False


def harm_of_in_place(case):
    """f(x) + x.clone(): where grad_output is changed, the other branch sees it;
    where the input is, whatever else reads it does."""
    got = []
    for side in ("right", "wrong"):
        f, (x, *rest) = build(case, side)
        y = f(x, *rest)
        gen = torch.Generator().manual_seed(97)
        w = torch.randn(x.shape, generator=gen, dtype=D)
        total = y + x if y.shape == x.shape else y + (x.clone() ** 2 * w).sum()
        (g,) = torch.autograd.grad(total, x, w if total.shape == w.shape else None)
        got.append(g)
    g = gap(got[:1], got[1:])
    assert g > 1e-3, "no harm seen where the tensor is shared"
    return f", shared tensor: gradient off by {g:.2g}"


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
    only = 0 if case["kind"] == "unused output" else None
    right, changed = first(case, "right", only)
    assert not changed, "the right one changes its inputs"
    try:
        wrong, changed = first(case, "wrong", only)
    except RuntimeError as exc:
        return "raises: " + str(exc)[:60]
    g = gap(right, wrong)
    assert g > 1e-3 or changed, f"wrong one not seen: {g}"
    extra_word = ", changes a tensor given to it" if changed else ""
    if g <= 1e-3:
        extra_word += harm_of_in_place(case)
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
    F, dist = torch.nn.functional, torch.distributions

    def op(group, name):
        return getattr(MODS["right", group], name).apply

    def same(a, b):
        assert torch.allclose(a, b), (a, b)

    x, df = cases.inputs_StudentTLogProb()
    same(op("probability", "StudentTLogProb")(x, df), dist.StudentT(df).log_prob(x))
    m, lv, mp, lp = cases.inputs_KLDiagGaussian()[:4]
    kl = dist.kl_divergence(
        dist.Normal(m, (lv / 2).exp()), dist.Normal(mp, (lp / 2).exp())
    )
    same(op("probability", "KLDiagGaussian")(m, lv, mp, lp, "none"), kl.sum(-1))
    pi, trans, emit, obs = cases.inputs_HmmLogLikelihood()
    p = pi.exp() * emit[:, obs[0]].exp()
    for o in obs[1:]:
        p = (p @ trans.exp()) * emit[:, o].exp()
    same(op("probability", "HmmLogLikelihood")(pi, trans, emit, obs), p.sum().log())
    logits, target = torch.randn(5, 4), torch.tensor([0, 2, 3, 3, 1])
    same(
        op("trainloss", "LabelSmoothCE")(logits, target),
        F.cross_entropy(logits, target, label_smoothing=0.1),
    )
    same(
        op("trainloss", "FocalLoss")(logits, target, 0.0),
        F.cross_entropy(logits, target),
    )
    s, t = torch.randn(3, 5), torch.randn(3, 5)
    ref = F.kl_div(F.log_softmax(s / 3, 1), F.softmax(t / 3, 1), reduction="batchmean")
    same(op("trainloss", "DistillKL")(s, t, 3.0), 9 * ref)
    x, w, c = torch.randn(2, 6), torch.randn(6), torch.randn(6)
    y, _ = op("kernels", "AddLayerNorm")(x, 2 * x, w, c)
    same(y, F.layer_norm(3 * x, (6,), w, c))
    q, k, v = (torch.randn(5, 4) for _ in range(3))
    same(
        op("kernels", "VarlenAttention")(q, k, v, [0, 5], True),
        F.scaled_dot_product_attention(q[None], k[None], v[None], is_causal=True)[0],
    )
    image, flow = torch.randn(1, 2, 4, 6, dtype=D), cases._flow(1, 4, 6).detach()
    px, py = MODS["right", "vision3d"]._sample_positions(flow)
    grid = torch.stack([2 * px / 5 - 1, 2 * py / 3 - 1], -1)
    same(
        op("vision3d", "BilinearFlowWarp")(image, flow),
        F.grid_sample(image, grid, align_corners=True),
    )
    (a,) = cases.inputs_SpdSqrt()
    root = op("numerics", "SpdSqrt")(a)
    same(root @ root, a)
    (x,) = cases.inputs_LambertW0()
    w = op("numerics", "LambertW0")(x)
    same(w * w.exp(), x)
    a, b = cases.inputs_DepressedCubicRoot()
    x = op("numerics", "DepressedCubicRoot")(a, b)
    same(x**3 + a * x, b)
    y, x = cases.inputs_CumulativeTrapezoid()
    same(
        op("numerics", "CumulativeTrapezoid")(y, x),
        torch.cumulative_trapezoid(y, x),
    )


def _run(case, full, cot_seed=5, spread=False):
    """Outputs and gradients of the right one for given leaves."""
    f, full = full
    outs = f(*full)
    outs = outs if isinstance(outs, tuple) else (outs,)
    outs = [o for o in outs if o.requires_grad]
    gen = torch.Generator().manual_seed(cot_seed)
    cots = []
    for o in outs:
        c = torch.randn(
            o.shape, generator=gen, dtype=D if o.dtype != torch.complex128 else o.dtype
        ).to(o.dtype)
        if spread and o.dim():  # the same values at other strides
            wide = torch.zeros(*o.shape, 2, dtype=o.dtype).transpose(0, -2)
            wide = wide.contiguous().transpose(0, -2)
            wide[..., 1] = c
            c = wide[..., 1]
        cots.append(c)
    before = [c.clone() for c in cots]
    grads = torch.autograd.grad(outs, diff_args(full), cots, allow_unused=True)
    assert all(torch.equal(a, b) for a, b in zip(before, cots)), "changes grad_output"
    return outs, grads


def _spread(a):
    """The same values as a leaf at other strides."""
    if not isinstance(a, torch.Tensor) or a.dim() == 0:
        return a
    wide = torch.zeros(*a.shape, 2, dtype=a.dtype).transpose(0, -2)
    wide = wide.contiguous().transpose(0, -2)
    wide[..., 1] = a.detach()
    out = wide[..., 1]
    if out.dim() > 1:  # also with the axes stored the other way round
        out = out.transpose(0, -1).contiguous().transpose(0, -1)
    return out.detach().requires_grad_(a.requires_grad)


def check_reviewed(case, args=None, make=None):
    """What a reviewer looks at: strides, float32, inputs without a gradient, mutation."""
    f, full = build(case, "right", args, make)
    kept = [a.detach().clone() if isinstance(a, torch.Tensor) else a for a in full]
    outs, grads = _run(case, (f, full))
    assert not any(g is None for g in grads), "None for an input that needs a gradient"
    same = [
        torch.equal(a, b) for a, b in zip(kept, full) if isinstance(a, torch.Tensor)
    ]
    assert all(same), "changes an input"
    for seen in (full, [_spread(a) for a in full]):
        _, other = _run(case, (f, seen), spread=True)
        assert gap(grads, other) < 1e-9, "wrong for other strides"
    if case["name"] != "HarmonicPhase" or args is not None:  # Julian dates need float64
        single = []
        for a in full:
            if isinstance(a, torch.Tensor) and a.dtype in (D, torch.complex128):
                to = torch.float32 if a.dtype == D else torch.complex64
                a = a.detach().to(to).requires_grad_(a.requires_grad)
            single.append(a)
        outs32, other = _run(case, (f, single))
        assert all(o.dtype in (torch.float32, torch.complex64) for o in outs32), "dtype"
        assert all(
            g.dtype == a.dtype for g, a in zip(other, diff_args(single), strict=True)
        )
        assert gap(grads, [g.to(r.dtype) for g, r in zip(other, grads)]) < 1e-2, "f32"
    wanted = [i for i, a in enumerate(full) if isinstance(a, torch.Tensor)]
    wanted = [i for i in wanted if full[i].requires_grad]
    for k, i in enumerate(wanted):  # one input alone needs a gradient
        alone = [a.detach() if isinstance(a, torch.Tensor) else a for a in full]
        alone[i] = alone[i].clone().requires_grad_()
        _, (g,) = _run(case, (f, alone))
        assert gap(grads[k : k + 1], [g]) < 1e-9, f"input {i} alone"
    if len(outs) > 1:  # one output alone is used
        for k in range(len(outs)):

            def one(*flat, k=k):
                return [o for o in f(*flat) if o.requires_grad][k]

            assert gradcheck(one, full), f"output {k} alone"


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
            check_reviewed(case)
            assert more[case["name"]], "no second set of inputs"
            for args in more[case["name"]]:
                nested = isinstance(args[-1], type(main))
                args, make = args if nested else (args, None)
                check_right(case, args, make)
                check_reviewed(case, args, make)
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
