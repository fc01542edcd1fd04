"""Central differences in float64 against every operator.  usage: verify.py [NAME ...]"""
import importlib.util
import os
import sys
import traceback

import torch

HERE = os.path.dirname(os.path.abspath(__file__))
torch.set_num_threads(1)
from written import CASES  # run as a script, from this folder

H = 1e-6


def load(side, name):
    spec = importlib.util.spec_from_file_location(f"{side}_{name}", os.path.join(HERE, side, name + ".py"))
    mod = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(mod)
    return mod


def build(case, side):
    cls = getattr(load(side, case["name"]), case["object"])
    if case["kind"] == "module":
        return case["make"](cls) if case.get("make") else cls()
    return cls


def call(obj, args):
    out = obj(*args) if isinstance(obj, torch.nn.Module) else obj.apply(*args)
    return out if isinstance(out, (tuple, list)) else (out,)


def fresh(args, fn=None):
    res = []
    for a in args:
        if isinstance(a, torch.Tensor):
            b = a.detach()
            b = fn(b) if fn is not None and b.is_floating_point() else b.clone()
            res.append(b.requires_grad_(a.requires_grad))
        else:
            res.append(a)
    return res


def leaves(obj, args):
    out = [a for a in args if isinstance(a, torch.Tensor) and a.requires_grad]
    if isinstance(obj, torch.nn.Module):
        out += [p for p in obj.parameters() if p.requires_grad]
    return out


def loss(outs, mask, ones=False):
    total = 0.0
    for i, o in enumerate(outs):
        if not mask[i]:
            continue
        g = torch.Generator().manual_seed(17 + i)
        w = torch.ones_like(o) if ones else torch.randn(o.shape, generator=g, dtype=torch.float64).to(o.dtype)
        if o.is_complex():
            if not ones:
                w = w + 1j * torch.randn(o.shape, generator=g, dtype=torch.float64).to(o.dtype)
            total = total + (w.conj() * o).real.sum()
        else:
            total = total + (o.sum() if ones else (w * o).sum())
    return total


def grads_of(obj, args, L):
    lv = leaves(obj, args)
    gs = torch.autograd.grad(L, lv, allow_unused=True, retain_graph=True)
    return [torch.zeros_like(x) if g is None else g.clone() for x, g in zip(lv, gs)]


def analytic(obj, args, mask, ones=False):
    args = fresh(args)
    return grads_of(obj, args, loss(call(obj, args), mask, ones))


def numeric(obj, args, mask, ones=False):
    args = fresh(args)
    res = []
    for x in leaves(obj, args):
        g = torch.zeros_like(x.detach())
        for flat in range(x.numel()):
            idx = tuple(int(i) for i in torch.unravel_index(torch.tensor(flat), x.shape)) if x.dim() else ()
            for unit in ((1.0, 1j) if x.is_complex() else (1.0,)):
                vals = []
                old = x.detach()[idx].clone()
                for s in (H, -H):
                    x.data[idx] = old + s * unit
                    with torch.no_grad():
                        vals.append(float(loss(call(obj, fresh(args)), mask, ones)))
                    x.data[idx] = old
                g[idx] += unit * (vals[0] - vals[1]) / (2 * H)
        res.append(g)
    return res


def err(a, b):
    worst = 0.0
    for x, y in zip(a, b):
        if x.numel():
            d = float((x - y).abs().max() / (1.0 + y.abs().max()))
            worst = max(worst, d if d == d else float("inf"))
    return worst


def masks(obj, args):
    return [isinstance(o, torch.Tensor) and o.requires_grad for o in call(obj, fresh(args))]


def noncontig(x):
    if x.dim() >= 2:
        return x.transpose(0, -1).contiguous().transpose(0, -1)
    if x.dim() == 1:
        return torch.stack([x, x + 1], -1)[:, 0]
    return x.clone()


def check_right(case):
    bad = []
    for k, make_in in enumerate([case["inputs"]] + list(case["more"])):
        args = make_in()
        obj = build(case, "right")
        mask = masks(obj, args)
        if not any(mask):
            bad.append(f"in{k}: no differentiable output")
            continue
        num = numeric(obj, args, mask)
        e = err(analytic(obj, args, mask), num)
        if e > 2e-7:
            bad.append(f"in{k}: err {e:.2e}")
        if sum(mask) > 1:
            for i, m in enumerate(mask):
                if m:
                    one = [j == i for j in range(len(mask))]
                    e = err(analytic(obj, args, one), numeric(obj, args, one))
                    if e > 2e-7:
                        bad.append(f"in{k}: output {i} alone err {e:.2e}")
        ref = analytic(obj, args, mask)
        nc = fresh(args, noncontig)
        L = loss(call(obj, nc), mask)
        e = err(grads_of(obj, nc, L), ref)
        e = max(e, err(grads_of(obj, nc, L), ref))
        if e > 1e-10:
            bad.append(f"in{k}: non-contiguous or second backward err {e:.2e}")
        e = err(analytic(obj, args, mask, True), numeric(obj, args, mask, True))
        if e > 2e-7:
            bad.append(f"in{k}: expanded gradient err {e:.2e}")
        before = fresh(args)
        got = fresh(args)
        loss(call(obj, got), mask).backward()
        for a, b in zip(before, got):
            if isinstance(a, torch.Tensor) and not torch.equal(torch.nan_to_num(a.detach()), torch.nan_to_num(b.detach())):
                bad.append(f"in{k}: input changed")
        if not case.get("no_f32"):
            o32 = build(case, "right")
            if isinstance(o32, torch.nn.Module):
                o32 = o32.float()
            a32 = [a.detach().to(torch.complex64 if a.is_complex() else torch.float32).requires_grad_(a.requires_grad)
                   if isinstance(a, torch.Tensor) and (a.is_floating_point() or a.is_complex()) else a for a in args]
            out32 = call(o32, a32)
            for i, o in enumerate(out32):
                if mask[i] and o.dtype not in (torch.float32, torch.complex64):
                    bad.append(f"in{k}: float32 output is {o.dtype}")
            g32 = grads_of(o32, a32, loss(out32, mask))
            e = err([g.to(r.dtype) for g, r in zip(g32, ref)], ref)
            if e > 1e-2:
                bad.append(f"in{k}: float32 err {e:.2e}")
        if not case.get("no_gg"):
            base = fresh(args)
            obj2 = build(case, "right")
            lv = leaves(obj2, base)
            gs = torch.autograd.grad(loss(call(obj2, base), mask), lv, create_graph=True, allow_unused=True)
            gs = [g for g in gs if g is not None and g.requires_grad]
            if gs:
                def first(*xs):
                    it = iter(xs)
                    a2 = [next(it) if isinstance(a, torch.Tensor) and a.requires_grad else a for a in base]
                    return tuple(o for o, m in zip(call(obj2, a2), mask) if m)
                if not isinstance(obj2, torch.nn.Module):
                    try:
                        torch.autograd.gradgradcheck(first, tuple(lv), atol=1e-4, rtol=1e-4)
                    except RuntimeError as ex:
                        if "once_differentiable" not in str(ex):
                            bad.append(f"in{k}: double backward {str(ex)[:200]}")
    return bad


def check_wrong(case):
    show = case.get("shows") or case["inputs"]
    args = show()
    robj, wobj = build(case, "right"), build(case, "wrong")
    mask = masks(robj, args)
    num = numeric(robj, args, mask)
    how = case.get("scenario")
    try:
        if how == "two_forwards":
            a, b = fresh(case["inputs"]()), fresh(args)
            L = loss(call(wobj, b), mask)
            call(wobj, a)
            got = grads_of(wobj, b, L)
        elif how == "earlier_call":
            a, b = fresh(case["inputs"]()), fresh(args)
            call(wobj, a)
            got = grads_of(wobj, b, loss(call(wobj, b), mask))
        elif how == "input_changed":
            b = fresh(args)
            call(wobj, b)
            same = all(torch.equal(x, y) for x, y in zip(args, b) if isinstance(x, torch.Tensor))
            return not same, "input changed", None
        elif how == "two_backwards":
            b = fresh(args)
            L = loss(call(wobj, b), mask)
            grads_of(wobj, b, L)
            got = grads_of(wobj, b, L)
        else:
            b = fresh(args)
            got = grads_of(wobj, b, loss(call(wobj, b), mask))
    except Exception as ex:  # an error is a difference too
        return True, "raises " + type(ex).__name__ + ": " + str(ex)[:80], None
    e = err(got, num)
    try:
        base = err(analytic(build(case, "wrong"), case["inputs"](), mask), numeric(robj, case["inputs"](), mask))
    except Exception as ex:
        base = float("nan")
    return e > case.get("tol", 1e-6), f"shows {e:.1e}", base


def main():
    names = set(sys.argv[1:])
    ok = total = plain = 0
    for case in CASES:
        if names and case["name"] not in names:
            continue
        total += 1
        try:
            bad = check_right(case)
        except Exception:
            bad = ["right raised " + traceback.format_exc()[-600:]]
        try:
            shown, note, base = check_wrong(case)
        except Exception:
            shown, note, base = False, traceback.format_exc()[-600:], None
        good = not bad and shown
        ok += good
        plain += base is not None and base > 1e-6
        print("ok  " if good else "FAIL", case["name"], note, "" if base is None else f"at inputs {base:.1e}", *bad)
    print(f"{ok}/{total} hold; {plain} of the bugs show at `inputs` already")
    return 0 if ok == total else 1


if __name__ == "__main__":
    sys.exit(main())
