"""Checks every case: right ones by gradcheck, wrong ones by comparison with the right one."""
import importlib.util
import os
import sys
from collections import Counter

import torch
from torch.autograd import gradcheck, gradgradcheck
from torch.func import functional_call

torch.set_num_threads(1)
HERE = os.path.dirname(os.path.abspath(__file__))


def load(path, name):
    spec = importlib.util.spec_from_file_location(name, path)
    mod = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(mod)
    return mod


cases = load(os.path.join(HERE, "cases.py"), "cases")
MODS = {(side, g): load(os.path.join(HERE, side, g + ".py"), f"{side}_{g}")
        for side in ("right", "wrong") for g in sorted({c["group"] for c in cases.CASES})}


def setup(case, side):
    """fn over differentiable tensors only, and those tensors."""
    cls = getattr(MODS[side, case["group"]], case["name"])
    args = getattr(cases, case["inputs"])()
    if issubclass(cls, torch.nn.Module):
        mod = case["make"](cls) if "make" in case else cls()
        names = [n for n, _ in mod.named_parameters()]
        params = tuple(p.detach().clone().requires_grad_() for _, p in mod.named_parameters())
        call = lambda full, ps: functional_call(mod, dict(zip(names, ps)), full)
    else:
        params = ()
        call = lambda full, ps: cls.apply(*full)
    pos = [i for i, a in enumerate(args) if isinstance(a, torch.Tensor) and a.requires_grad]
    k = len(pos)

    def fn(*ts):
        full = list(args)
        for i, t in zip(pos, ts):
            full[i] = t
        return call(tuple(full), ts[k:])
    return fn, tuple(args[i] for i in pos) + params


def diff_outs(out):
    outs = out if isinstance(out, tuple) else (out,)
    return [o for o in outs if o.requires_grad]


def probe(case, side, order):
    """All that is observed of one side: gradients, and what happened to outputs and grad_outputs."""
    fn, ins = setup(case, side)
    try:
        outs = diff_outs(fn(*ins))
        before = [o.detach().clone() for o in outs]
        torch.manual_seed(7)
        gs = [torch.randn_like(o) for o in outs]
        g0 = [g.clone() for g in gs]
        if order == 1:
            res = torch.autograd.grad(outs, ins, gs, retain_graph=True, allow_unused=True)
        else:
            gs = [g.requires_grad_() for g in gs]
            first = torch.autograd.grad(outs, ins, gs, create_graph=True, allow_unused=True)
            first = [f for f in first if f is not None and f.requires_grad]
            vs = [torch.randn_like(f) for f in first]
            res = torch.autograd.grad(first, list(ins) + gs, vs, allow_unused=True) if first else [None] * (len(ins) + len(gs))
        note = []
        if any(not torch.equal(a, b.detach()) for a, b in zip(before, outs)):
            note.append("output mutated")
        if any(not torch.equal(a, b.detach()) for a, b in zip(g0, gs)):
            note.append("grad_output mutated")
        return [None if r is None else r.detach() for r in res], note, None
    except Exception as e:  # noqa
        return None, [], f"{type(e).__name__}: {str(e).splitlines()[0][:90]}"


def differs(a, b):
    worst = 0.0
    for x, y in zip(a, b):
        ref = x if x is not None else y
        if ref is None:
            continue
        x = torch.zeros_like(ref) if x is None else x
        y = torch.zeros_like(ref) if y is None else y
        if x.shape != y.shape:
            return float("inf")
        if not bool(torch.isfinite(torch.view_as_real(y) if y.is_complex() else y).all()):
            return float("nan")
        d, n = (x - y).norm().item(), x.norm().item()
        if n == 0 and d > 0:
            return float("inf")
        worst = max(worst, d / n if n else 0.0)
    return worst


def one_side_wrong(case, order):
    r, rn, re = probe(case, "right", order)
    w, wn, we = probe(case, "wrong", order)
    assert re is None and not rn, ("right misbehaves", re, rn)
    if we:
        return True, "raises " + we
    if wn:
        return True, wn[0]
    d = differs(r, w)
    return (d != d or d > 1e-3), "NaN" if d != d else f"rel diff {d:.2g}"


bad, kinds = [], Counter()
for case in cases.CASES:
    kinds[case["kind"]] += 1
    name = f'{case["group"]}.{case["name"]}'
    try:
        fn, ins = setup(case, "right")
        assert gradcheck(fn, ins)
        if case["second_order_right"] is None:
            # torch.autograd.grad would not reach the error node; .backward() does
            try:
                first = torch.autograd.grad(diff_outs(fn(*ins))[0].pow(2).sum(), ins, create_graph=True)
                sum(f.sum() for f in first).backward()
            except RuntimeError as e:
                assert "once_differentiable" in str(e), e
            else:
                raise AssertionError("not once_differentiable?")
        else:
            ok = bool(gradgradcheck(fn, ins, raise_exception=case["second_order_right"]))
            assert ok == case["second_order_right"], f"gradgradcheck gives {ok}"
        o1, t1 = one_side_wrong(case, 1)
        if case["second_order_right"] is True:
            o2, t2 = one_side_wrong(case, 2)
        else:
            o2, t2 = None, "-"
        want = {"first": o1, "second": (not o1) and o2, "both": o1 and o2}[case["shows"]]
        assert want, f"shows={case['shows']} but first={o1} ({t1}) second={o2} ({t2})"
        if case["shows"] == "first" and o2:
            print(f"   note {name}: also at second order ({t2})")
        # the wrong forward agrees with the right one
        wf, wi = setup(case, "wrong")
        for a, b in zip(diff_outs(fn(*ins)), diff_outs(wf(*wi))):
            assert torch.equal(a, b), "forward differs"
        print(f"ok {name:34s} 1st: {t1:60s} 2nd: {t2}")
    except Exception as e:  # noqa
        bad.append(name)
        print(f"BAD {name}: {type(e).__name__}: {str(e)[:500]}")

# extra: batch norm in training mode too
for side in ("right",):
    cls = MODS[side, "norms"].BatchNormEMA
    m = cases.make_BatchNormEMA(cls).train()
    x = cases.inputs_BatchNormEMA()[0]
    f = lambda x, w, b: functional_call(m, {"weight": w, "bias": b}, x)
    ins = (x, m.weight.detach().clone().requires_grad_(), m.bias.detach().clone().requires_grad_())
    assert gradcheck(f, ins) and gradgradcheck(f, ins)

# every other option of the right ones that the inputs above do not take
R = {g: MODS["right", g] for g in ("activations", "losses", "norms", "scatter", "linalg")}
torch.manual_seed(0)
rnd = lambda *s: torch.randn(*s, dtype=torch.float64, requires_grad=True)
extra = [
    ("GLU dim 0", R["activations"].GatedLinearUnit, (rnd(4, 3), 0), True),
    ("PReLU 2-d", R["activations"].ChannelPReLU, (rnd(4, 3), rnd(3)), True),
    ("PReLU 4-d", R["activations"].ChannelPReLU, (rnd(2, 3, 2, 2), rnd(3)), True),
    ("CELU default", R["activations"].CELUFn, (rnd(5),), True),
    ("Focal none", R["losses"].SigmoidFocal, (rnd(5), torch.tensor([0., 1, 1, 0, 1], dtype=torch.float64), .25, 2., "none"), True),
    ("Focal sum", R["losses"].SigmoidFocal, (rnd(2), torch.tensor([0., 1], dtype=torch.float64), .25, 3., "sum"), True),
    ("Huber none", R["losses"].HuberFn, (rnd(5), rnd(5), 1.0, "none"), True),
    ("Huber sum", R["losses"].HuberFn, (rnd(5), rnd(5), .5, "sum"), True),
    ("NLL none", R["losses"].WeightedNLL, (rnd(3, 4), torch.tensor([1, 3, -100]), None, -100, "none"), True),
    ("NLL mean", R["losses"].WeightedNLL, (rnd(3, 4), torch.tensor([1, 3, -100])), True),
    ("NLL sum", R["losses"].WeightedNLL, (rnd(3, 4), torch.tensor([1, 3, 0]), None, -100, "sum"), True),
    ("Poisson log none", R["losses"].PoissonNLL, (rnd(5), rnd(5), True, 1e-8, "none"), True),
    ("Poisson log mean", R["losses"].PoissonNLL, (rnd(5), torch.rand(5, dtype=torch.float64)), True),
    ("GroupNorm plain", R["norms"].GroupNormFn, (rnd(2, 6, 3), 3), True),
    ("GroupNorm positional None", R["norms"].GroupNormFn, (rnd(2, 6, 3), 3, None, None, 1e-3), True),
    ("GroupNorm weight", R["norms"].GroupNormFn, (rnd(2, 6, 3), 3, rnd(6)), True),
    ("Softplus threshold", R["activations"].ShiftedSoftplus, ((rnd(6) * 4).detach().requires_grad_(), 2.0, 3.0), None),
    ("CE plain", R["losses"].SmoothedCrossEntropy, (rnd(3, 4), torch.tensor([0, 3, 1])), None),
    ("CE all ignored", R["losses"].SmoothedCrossEntropy, (rnd(2, 4), torch.tensor([-1, -1]), -1, .2), None),
    ("Huber default", R["losses"].HuberFn, (rnd(5), rnd(5)), True),
    ("Dice 2-d", R["losses"].SoftDiceLoss, (torch.rand(2, 5, dtype=torch.float64).requires_grad_(), torch.tensor([[1., 0, 0, 1, 1], [0, 0, 1, 0, 0]])), True),
    ("Dice non-contiguous", R["losses"].SoftDiceLoss, (torch.rand(5, 2, dtype=torch.float64).t().requires_grad_(), torch.tensor([[1., 0, 0, 1, 1], [0, 0, 1, 0, 0]])), True),
    ("FRN default eps", R["norms"].FilterResponseNormFn, (rnd(2, 3, 2, 2), rnd(1, 3, 1, 1), rnd(1, 3, 1, 1), rnd(1, 3, 1, 1)), False),
    ("LayerNorm 4-d eps", R["norms"].LayerNormFn, (rnd(2, 2, 2, 4), rnd(4), rnd(4), .1), True),
    ("Lookup no padding", R["scatter"]._LookupFn, (rnd(5, 3), torch.tensor([[0, 1], [1, 4]]), None), True),
    ("Instance 3-d", R["norms"].InstanceNormFn, (rnd(2, 3, 4), .1), True),
    ("Instance non-contiguous", R["norms"].InstanceNormFn, (torch.randn(2, 4, 3, dtype=torch.float64).transpose(1, 2).requires_grad_(),), True),
    ("Triplet default", R["losses"].TripletSquared, (rnd(4, 3), rnd(4, 3), rnd(4, 3)), True),
    ("Bag table only", R["scatter"].WeightedBag, (rnd(5, 3), torch.tensor([0, 2, 2]), torch.tensor([0, 1]), torch.rand(3, dtype=torch.float64)), None),
    ("Solve 1 col", R["linalg"].SolveFn, ((torch.randn(4, 4, dtype=torch.float64) + 4 * torch.eye(4)).requires_grad_(), rnd(4, 1)), True),
    ("Solve batch", R["linalg"].SolveFn, ((torch.randn(2, 3, 3, dtype=torch.float64) + 4 * torch.eye(3)).requires_grad_(), rnd(2, 3, 2)), True),
    ("GroupNorm bias", R["norms"].GroupNormFn, (rnd(2, 6, 2, 2), 2, None, rnd(6)), True),
    ("WeightNorm dim 0", R["norms"].WeightNormFn, (rnd(3, 4), rnd(3, 1)), True),
    ("WeightNorm 1-d row", R["norms"].WeightNormFn, (rnd(3, 4), rnd(1, 4), 1), True),
    ("L2 dim 0", R["norms"].L2NormalizeFn, (rnd(3, 4), 0), True),
    ("ZScore dim 1 ddof 0", R["norms"].ZScore, (rnd(3, 4), 1, 0), True),
    ("LRN odd", R["norms"].LocalResponseNorm, (rnd(2, 5, 2), 3, .5), False),
    ("LRN size 1", R["norms"].LocalResponseNorm, (rnd(2, 5, 2), 1, .5), False),
    ("LRN wide", R["norms"].LocalResponseNorm, (rnd(2, 3, 2), 8, .5), False),
    ("LayerNorm 2-d", R["norms"].LayerNormFn, (rnd(3, 4), rnd(4), rnd(4)), True),
    ("TopK dim 0", R["scatter"].TopKPool, (rnd(4, 3), 2, 0), True),
    ("Frame hop>len", R["scatter"].FrameSignal, (rnd(2, 9), 2, 3), True),
    ("Gather 3-d", R["scatter"].GatherRows, (rnd(4, 3, 2), torch.tensor([0, 0, 3])), True),
    ("Bag plain", R["scatter"].WeightedBag, (rnd(5, 3), torch.tensor([0, 2, 2]), torch.tensor([0, 0, 2])), None),
    ("SegSoftmax empty", R["scatter"].SegmentSoftmax, (rnd(4), torch.tensor([0, 3, 3, 0]), 5), True),
    ("Cholesky batch", R["linalg"].CholeskyFn, (cases._spd(2, 3, 3),), True),
    ("LogDet single", R["linalg"].LogDetSPD, (cases._spd(3, 3),), True),
    ("TriSolve lower", R["linalg"].TriangularSolve, (torch.tril(torch.eye(3, dtype=torch.float64) * 2 + .3).requires_grad_(), rnd(3, 2)), True),
    ("TriSolve batch", R["linalg"].TriangularSolve, (torch.tril(torch.eye(3, dtype=torch.float64).repeat(2, 1, 1) * 2 + .3).requires_grad_(), rnd(2, 3, 2)), True),
    ("Kron contiguous", R["linalg"].KronMatVec, (rnd(3, 2), rnd(2, 4), rnd(2, 8)), True),
]
for label, cls, args, second in extra:
    try:
        assert gradcheck(cls.apply, args)
        if second:
            assert gradgradcheck(cls.apply, args)
    except Exception as e:  # noqa
        bad.append(label)
        print(f"BAD extra {label}: {str(e)[:400]}")

print(f"{len(cases.CASES)} cases, {len(extra) + 1} extra option checks, {len(bad)} bad: {bad}")
for k, n in kinds.most_common():
    print(f"  {n}  {k}")
sys.exit(bool(bad))
