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
    """Other options and sizes for the right ones: name -> list of argument tuples."""
    torch.manual_seed(7)
    c = cases
    r, n = c._rand, c._randn
    t = torch.tensor
    return {
        "LennardJonesCut": [
            (r(5, lo=0.9, hi=2.4),),
            (r(2, 2, lo=0.9, hi=1.9), 1.0, 1.0, 2.0, False),
        ],
        "MorseBonds": [(n(3, 2), t([[0, 1], [1, 2]])), (n(3, 3), t([[0, 0], [1, 2]]))],
        "CosineAngleEnergy": [(n(4, 3), t([[0, 1, 2]]), r(1, lo=0.5), 0.2)],
        "GaussianSmearing": [(r(6), r(2), 1.0), (r(3, grad=False), r(2))],
        "CosineEnvelope": [(r(4, lo=0.5, hi=7.0),), (r(3, 2, hi=2.0), 3.0, 2)],
        "EwaldRealSpace": [(n(3), n(3, 3), t([[0, 1], [2, 2]]))],
        "PairRepulsionSum": [(n(3, 2), 1.4)],
        "BlockDiagonalMul": [(n(2, 3, 2), n(3, 4)), (n(3, 1, 4), n(2, 12))],
        "BandedMul": [(n(1, 4), n(3, 4)), (n(5, 7), n(1, 7))],
        "ToeplitzMul": [(n(1), n(1, 2)), (n(9), n(5, 1))],
        "CirculantMul": [(n(6), n(2, 6)), (n(1), n(3, 1))],
        "KroneckerApply": [(n(3, 3), n(2, 2), n(1, 6))],
        "TridiagonalSolve": [(n(2), r(3, lo=4.0, hi=5.0), n(2), n(3))],
        "CooMatVec": [(n(3), t([1, 1, 4]), t([0, 0, 2]), n(3), 5)],
        "PackedSymQuadForm": [(n(10), n(2, 4)), (n(1), n(3, 1))],
        "RangeWeightedSmooth": [(r(1, 1, 6, 5), 5), (r(1, 1, 3, 3),)],
        "GuidedPatchFilter": [(r(2, 4), r(2, 4))],
        "SpaceToDepth": [(n(2, 1, 3, 6), 3)],
        "GreyDilation1d": [(n(1, 3, 6), n(3, 2)), (n(1, 1, 9), n(1, 3), 3)],
        "SrgbToLinear": [(r(3, 2, 2, lo=-0.2),)],
        "SeparableSmooth": [(n(2, 1, 3, 6), r(5)), (n(1, 1, 2, 2), r(1))],
        "CharbonnierTV": [(r(2, 1, 3, 4),), (r(1, 1, 4, 2), 0.1)],
        "LocalContrastNorm": [
            (n(2, 2, 2, 3), 0.1),
            (torch.ones(1, 1, 2, 2, dtype=D, requires_grad=True), 0.1),
        ],
        "MirrorPad1d": [
            (n(1, 2, 4), [0, 1]),
            (n(1, 1, 5), [4, 0]),
            (n(1, 1, 3), (2, 2)),
        ],
        "UnsharpMask": [(r(2, 1, 5, 6), r(1).squeeze(0).detach().requires_grad_(), 2)],
        "MinGatedScan": [(r(1, 1, 2), n(1, 1, 2), n(1, 2))],
        "CausalLinearAttention": [(n(1, 3, 2), n(1, 3, 2), n(1, 3, 4), 0.3)],
        "CtcForwardSum": [
            (n(4, 3), t([1, 0]), 2),
            (n(3, 3), t([1])),
            (n(6, 4), t([1, 2, 3])),
        ],
        "CrfLogPartition": [
            (n(3, 2, 4), n(4, 4)),
            (n(1, 1, 2), n(2, 2)),
            (n(2, 5, 2), n(2, 2), t([[0, 1, 0, 1, 1], [1, 0, 0, 1, 0]]).bool()),
        ],
        "SoftPathCost": [(r(3, 3),), (r(1, 4), 0.2), (r(5, 2), 2.0)],
        "TokenShift": [(n(2, 3, 4), r(4)), (n(1, 1, 2), r(2))],
        "ComplexDiagonalScan": [
            (
                n(2).detach().to(torch.complex128).requires_grad_(),
                torch.randn(1, 3, 2, dtype=torch.complex128, requires_grad=True),
            ),
            (r(2), n(3, 2, 2)),
        ],
        "MaskedMeanPool": [(n(2, 3, 3), t([1, 3]))],
        "RecomputedMlp": [(n(2, 2), n(3, 2), n(3), n(4, 3))],
        "FusedBiasDropout": [
            (n(3, 4), n(4), torch.rand(3, 4) > 0.5),
            (n(3, 4), None, torch.rand(3, 4) > 0.5, 0.2, True),
            (n(2, 2, 2), None, torch.rand(2, 2, 2) > 0.5, 0.2, False),
        ],
        "FusedLinearXent": [
            (n(3, 2), n(4, 2), t([0, 3, 1])),
            (n(5, 2), n(3, 2), t([0, 1, 1, 2, 0]), 1, 2),
        ],
        "WindowedFrames": [
            (n(2, 10), r(3)),
            (n(1, 6), r(2), 3),
            (n(2, 12)[:, ::2].detach().requires_grad_(), r(3), 1),
        ],
        "PackedSoftmax": [(n(5), [0, 5]), (n(4, 3), [0, 2, 4])],
        "ReversibleCoupling": [(n(4, 2), n(4, 2), n(2, 2), n(2, 2))],
        "GatedKeep": [(n(5), n(5))],
        "NumpyRunningMax": [(n(1, 9),), (n(4, 1),)],
        "CausalTokenMix": [(n(1, 6, 2),), (n(2, 1, 2),)],
        "AlibiBias": [(n(1, 4, 2, 5),)],
        "BesselRadial": [(r(2, lo=0.5, hi=5.0),)],
        "FrozenStatNorm": [(n(4, 3),)],
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


def harm_of_shared_gradient(case):
    """f(x) + x: both branches are handed the same gradient."""
    got = []
    for side in ("right", "wrong"):
        f, (x,) = build(case, side)
        (f(x) + x).backward(torch.ones_like(x))
        got.append(x.grad)
    g = gap(got[:1], got[1:])
    assert g > 1e-3, "no harm seen where the gradient is shared"
    return f", shared gradient off by {g:.2g}"


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
    if g <= 1e-3:
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
    x = torch.randn(2, 3, 4, 6, dtype=D)
    apply = MODS["right", "restore"].SpaceToDepth.apply
    assert torch.equal(apply(x, 2), torch.nn.functional.pixel_unshuffle(x, 2))
    ctc = MODS["right", "sequences"].CtcForwardSum.apply
    lp = torch.log_softmax(torch.randn(7, 4, dtype=D), 1)
    for tgt in ([2, 2, 1], [1], [1, 2, 3], [3, 3]):
        ref = torch.nn.functional.ctc_loss(
            lp[:, None], torch.tensor([tgt]), [7], [len(tgt)], reduction="sum"
        )
        assert torch.allclose(ctc(lp, torch.tensor(tgt)), ref)
    xent = MODS["right", "memory"].FusedLinearXent.apply
    h, w, t = cases.inputs_FusedLinearXent()
    assert torch.allclose(
        xent(h, w, t), torch.nn.functional.cross_entropy(h @ w.t(), t)
    )
    c, v = torch.randn(5, dtype=D), torch.randn(5, dtype=D)
    dense = torch.stack([c.roll(i) for i in range(5)], 1)
    assert torch.allclose(
        MODS["right", "structured"].CirculantMul.apply(c, v[None])[0], dense @ v
    )
    lo, di, up, b = cases.inputs_TridiagonalSolve()
    a = torch.diag(di) + torch.diag(lo, -1) + torch.diag(up, 1)
    sol = MODS["right", "structured"].TridiagonalSolve.apply(lo, di, up, b)
    assert torch.allclose(a @ sol, b)


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
            for args in more.get(case["name"], []):
                check_right(case, args)
            if case["name"] == "FrozenStatNorm":
                check_right(case, make=lambda cls: cls(3).double())
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
