"""Checks of the corpus: right ones are right, wrong ones are wrong at the named inputs."""
import collections
import difflib
import importlib.util
import os
import sys

import torch
from torch.autograd import gradcheck, gradgradcheck

import cases as C

torch.set_num_threads(1)
HERE = os.path.dirname(os.path.abspath(__file__))


def load(kind, group):
    path = os.path.join(HERE, kind, group + ".py")
    spec = importlib.util.spec_from_file_location(f"{kind}_{group}", path)
    mod = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(mod)
    return mod


def setup(cls, args, make):
    """-> f(*tensors that need a gradient), those tensors, all tensors"""
    args = list(args)
    where = [i for i, a in enumerate(args) if isinstance(a, torch.Tensor) and a.requires_grad]
    if make is None:
        assert issubclass(cls, torch.autograd.Function)
        params, names, call = [], [], cls.apply
    else:
        m = make(cls)
        names, params = zip(*m.named_parameters())
        params = [p.detach().clone().requires_grad_() for p in params]

        def call(*a, ps=None):
            return torch.func.functional_call(m, dict(zip(names, ps)), a)
    n = len(where)

    def f(*ts):
        a = list(args)
        for i, t in zip(where, ts[:n]):
            a[i] = t
        out = call(*a) if make is None else call(*a, ps=ts[n:])
        out = out if isinstance(out, tuple) else (out,)
        return tuple(o for o in out if o.requires_grad)
    return f, [args[i] for i in where] + list(params)


def try_(fn):
    try:
        fn()
        return None
    except Exception as e:  # noqa: BLE001
        return f"{type(e).__name__}: {str(e).splitlines()[0][:110]}"


def check1(f, ins):
    return try_(lambda: gradcheck(f, ins, fast_mode=False, eps=1e-6, atol=1e-6, rtol=1e-4))


def check2(f, ins):
    torch.manual_seed(7)
    return try_(lambda: gradgradcheck(f, ins, fast_mode=False, eps=1e-6, atol=1e-5, rtol=1e-4))


def grads(cls, case, order):
    """first (and second) derivatives with fixed cotangents; also what was mutated"""
    f, ins = setup(cls, getattr(C, case["inputs"])(), case.get("make"))
    before = [t.detach().clone() for t in ins]
    outs = f(*ins)
    gen = torch.Generator().manual_seed(3)
    cot = [torch.randn(o.shape, dtype=o.dtype, generator=gen) for o in outs]
    kept = [c.clone() for c in cot]
    res = {}
    if order == 1:
        g = torch.autograd.grad(outs, ins, cot, allow_unused=True)
    else:
        cot = [c.requires_grad_() for c in cot]
        g1 = torch.autograd.grad(outs, ins, cot, create_graph=True, allow_unused=True)
        if all(t is None for t in g1):
            return {"g": [None] * (len(ins) + len(cot)), "mutated": []}
        s = sum((t * torch.randn(t.shape, dtype=t.dtype, generator=gen)).real.sum()
                if t.is_complex() else (t * torch.randn(t.shape, dtype=t.dtype, generator=gen)).sum()
                for t in g1 if t is not None)
        g = torch.autograd.grad(s, list(ins) + cot, allow_unused=True)
    res["g"] = g
    res["mutated"] = [n for n, a, b in (("input", before, ins), ("grad_output", kept, cot))
                      if any(not torch.equal(p, q.detach()) for p, q in zip(a, b))]
    return res


def differs(case, right, wrong, order):
    r = grads(right, case, order)
    assert not r["mutated"], "right one mutates"
    try:
        w = grads(wrong, case, order)
    except Exception as e:  # noqa: BLE001
        return f"raises {type(e).__name__}"
    if w["mutated"]:
        return "mutates " + ",".join(w["mutated"])
    for a, b in zip(r["g"], w["g"]):
        if a is None and b is None:
            continue
        if a is None or b is None:
            z = a if b is None else b
            if z.abs().max() > 1e-9:
                return "no gradient"
            continue
        if not torch.isfinite(b.abs()).all():
            return "NaN/inf"
        rel = (a - b).abs().max() / a.abs().max().clamp(min=1e-12)
        if rel > 1e-3:
            return f"differs by {float(rel):.2g}"
    return None


bad = []


def must(ok, *why):
    if not ok:
        bad.append(" ".join(map(str, why)))
        print("  !!", *why)


def main():
    groups = sorted({c["group"] for c in C.CASES})
    mods = {(k, g): load(k, g) for k in ("right", "wrong") for g in groups}
    for c in C.CASES:
        name, g = c["name"], c["group"]
        right, wrong = getattr(mods["right", g], name), getattr(mods["wrong", g], name)
        sets = [(getattr(C, c["inputs"])(), c.get("make"))]
        sets += [(a, c.get("make")) for a in (getattr(C, c["also"])() if "also" in c else [])]
        if name == "NodeNorm":
            sets += [(C.inputs_NodeNorm(), C.make_NodeNorm_train), ((C.rn(1, 3),), C.make_NodeNorm_train)]
        seconds = []
        for args, make in sets:
            f, ins = setup(right, args, make)
            must(len(ins) > 0, name, "nothing to differentiate")
            e = check1(f, ins)
            must(e is None, name, "right fails gradcheck:", e)
            if c["second_order_right"] is not None:
                seconds.append(check2(f, ins))
        if c["second_order_right"] is True:
            must(not any(seconds), name, "right fails gradgradcheck:", seconds)
        elif c["second_order_right"] is False:
            must(any(seconds), name, "marked False, but second order holds")
        d1 = differs(c, right, wrong, 1)
        f, ins = setup(wrong, getattr(C, c["inputs"])(), c.get("make"))
        e1 = check1(f, ins)
        f, ins = setup(wrong, getattr(C, c["inputs"])(), c.get("make"))
        e2 = check2(f, ins) if c["second_order_right"] else None
        d2 = differs(c, right, wrong, 2) if c["second_order_right"] else None
        saw1, saw2 = bool(d1), bool(e2)
        shows = "both" if saw1 and saw2 else "first" if saw1 else "second" if saw2 else "none"
        must(shows == c["shows"], name, "shows", shows, "not", c["shows"])
        must(bool(d1) or bool(d2), name, "wrong one is not wrong", d1, d2)
        print(f"{g}.{name}: 1st {d1} | gradcheck {e1} | 2nd {d2} | gradgradcheck {e2}")
    for g in groups:
        a, b = (open(os.path.join(HERE, k, g + ".py")).read().splitlines() for k in ("right", "wrong"))
        changed = [i for i, (p, q) in enumerate(zip(a, b)) if p != q]
        must(len(a) == len(b), g, "line counts differ")
        n = sum(c["group"] == g for c in C.CASES)
        must(len(changed) == n, g, len(changed), "lines changed for", n, "cases")
    names = [c["name"] for c in C.CASES]
    must(len(set(names)) == len(names), "names repeat")
    kinds = collections.Counter(c["kind"] for c in C.CASES)
    for k, v in kinds.most_common():
        print(f"  {v} {k}")
    must(max(kinds.values()) <= 6, "one kind too often")
    print("shows:", dict(collections.Counter(c["shows"] for c in C.CASES)))
    print("second_order_right:", dict(collections.Counter(str(c["second_order_right"]) for c in C.CASES)))
    print(f"{len(C.CASES)} cases, {len(bad)} problems")
    for b in bad:
        print("PROBLEM", b)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
