"""Central differences for every operator: right ones must agree, wrong ones must not.

usage: verify.py [NAME ...]
"""
import copy
import importlib.util
import os
import sys

import torch

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
from written import CASES  # run as a script, from this folder

EPS = 1e-6
TOL = 2e-6


def load(side, case):
    path = os.path.join(HERE, side, case["name"] + ".py")
    spec = importlib.util.spec_from_file_location(side + "_" + case["name"], path)
    mod = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(mod)
    return getattr(mod, case["object"])


def flat(x):
    if isinstance(x, torch.Tensor):
        return [x]
    if isinstance(x, (tuple, list)):
        return [t for y in x for t in flat(y)]
    return []


def rebuild(x, fn):
    if isinstance(x, torch.Tensor):
        return fn(x)
    if isinstance(x, (tuple, list)):
        return type(x)(rebuild(y, fn) for y in x)
    return x


def build(case, obj):
    """-> callable(args) -> tuple of outputs, and the parameters"""
    if case["kind"] == "module":
        m = case["make"](obj)
        return (lambda *a: copy_run(m, a)), trainable(m), m
    return (lambda *a: obj.apply(*a)), [], None


def trainable(m):
    return [p for p in m.parameters() if p.requires_grad]


def copy_run(m, a):
    return m(*a)


def restore(m, state):
    if m is not None:
        for k, b in m.named_buffers():
            if k in state and not torch.equal(b, state[k]):
                b.copy_(state[k])


def outs(y):
    return [t for t in flat(y) if t.is_floating_point() or t.is_complex()]


def cot(ys, seed=77):
    g = torch.Generator().manual_seed(seed)
    return [torch.randn(y.shape, generator=g, dtype=torch.float64).to(y.dtype) if not y.is_complex()
            else torch.randn(y.shape, generator=g, dtype=torch.complex128).to(y.dtype) for y in ys]


def dot(ys, cs):
    return sum(float((c.conj() * y.detach()).real.sum()) for y, c in zip(ys, cs))


def detached(args):
    return rebuild(args, lambda t: t.detach().clone())


def numeric(case, obj, args, cseed=77, ones=False):
    f, params, m = build(case, obj)
    base = detached(args)
    buf = {k: b.clone() for k, b in m.named_buffers()} if m is not None else {}
    flags = [t.requires_grad for t in flat(args)]
    leaves = [t for t, fl in zip(flat(base), flags) if fl] + [p.data for p in params]
    wants = [t.requires_grad for t in outs(build(case, obj)[0](*rebuild(args, lambda t: t.detach().clone().requires_grad_(t.requires_grad))))]
    with torch.no_grad():
        def ev(first=False):
            restore(m, buf)
            y = outs(f(*rebuild(base, lambda t: t.clone())))
            return y
        y0 = ev()
        cs = [torch.ones_like(y) for y in y0] if ones else cot(y0, cseed)
        cs = [c if w else torch.zeros_like(c) for c, w in zip(cs, wants)]
        res = []
        for leaf in leaves:
            gr = torch.zeros_like(leaf)
            for idx in torch.cartesian_prod(*[torch.arange(s) for s in leaf.shape]).reshape(-1, max(leaf.dim(), 1)).tolist() if leaf.dim() else [[]]:
                idx = tuple(idx) if leaf.dim() else ()
                for unit in ([1.0, 1j] if leaf.is_complex() else [1.0]):
                    old = leaf[idx].clone()
                    leaf[idx] = old + EPS * unit
                    a = dot(ev(), cs)
                    leaf[idx] = old - EPS * unit
                    b = dot(ev(), cs)
                    leaf[idx] = old
                    gr[idx] += unit * (a - b) / (2 * EPS)
            res.append(gr)
    return res


def strided(t):
    if t.dim() == 0 or t.numel() == 0:
        return t
    if t.dim() == 1:
        big = torch.stack([t, torch.zeros_like(t)], 1)
        return big[:, 0]
    return t.transpose(0, -1).contiguous().transpose(0, -1)


def analytic(case, obj, args, mode="plain", only=None, dtype=None, ones=False):
    f, params, m = build(case, obj)
    if dtype is not None and m is not None:
        m.to(dtype)
        params = trainable(m)

    def prep(t):
        r = t.requires_grad
        v = t.detach()
        if mode == "keep":
            pass
        elif mode == "strided":
            v = strided(v.clone())
        else:
            v = v.clone(memory_format=torch.preserve_format) if mode != "contig" else v.contiguous().clone()
        if dtype is not None and v.dtype == torch.float64:
            v = v.to(dtype)
        if dtype is not None and v.dtype == torch.complex128:
            v = v.to(torch.complex64)
        return v.requires_grad_(r)

    a = rebuild(args, prep)
    all_leaves = [t for t in flat(a) if t.requires_grad]
    if only is not None:
        for i, t in enumerate(all_leaves):
            if i != only:
                t.requires_grad_(False)
        for p in params:
            p.requires_grad_(False)
        leaves = [all_leaves[only]]
    else:
        leaves = all_leaves + params
    before = [t.detach().clone() for t in flat(a)]
    if mode == "warm":  # the same operator was used before, with other values
        earlier = rebuild(a, lambda t: (t.detach() * 0.83 + 0.02).requires_grad_(t.requires_grad)
                          if t.requires_grad else t)
        state = {k: b.clone() for k, b in m.named_buffers()} if m is not None else {}
        sum(t.abs().sum() for t in outs(f(*earlier)) if t.requires_grad).backward()
        with torch.no_grad():
            restore(m, state)
    y = f(*rebuild(a, lambda t: t))
    ys = outs(y)
    for t, b in zip(flat(a), before):
        if not torch.equal(t.detach(), b):
            raise AssertionError("forward changed an input")
    cs = [torch.ones_like(t) for t in ys] if ones else cot(ys)
    pairs = [(t, c) for t, c in zip(ys, cs) if t.requires_grad]
    if not pairs:
        raise AssertionError("output does not require grad")
    if mode == "two calls":
        other = rebuild(a, lambda t: (t.detach() * 0.83 + 0.02).requires_grad_(t.requires_grad)
                        if t.is_floating_point() and t.requires_grad else t)
        oy = outs(f(*other))
    if mode == "strided":
        pairs = [(t, strided(c)) for t, c in pairs]
    L = [t for t, _ in pairs]
    C = [c for _, c in pairs]
    if ones:
        C = [torch.ones((), dtype=c.dtype).expand(c.shape) for c in C]
    c0 = [c.clone() for c in C]
    if mode == "twice":
        torch.autograd.grad(L, leaves, [c.clone() for c in C], allow_unused=True, retain_graph=True)
    gs = torch.autograd.grad(L, leaves, C, allow_unused=True)
    for t, b in zip(flat(a), before):
        if not torch.equal(t.detach(), b):
            raise AssertionError("backward changed an input")
    for c, b in zip(C, c0):
        if not torch.equal(c, b):
            raise AssertionError("backward changed the incoming gradient")
    for g, l in zip(gs, leaves):
        if g is not None and (g.shape != l.shape or g.dtype != l.dtype):
            raise AssertionError("gradient has another shape or dtype")
    return [torch.zeros_like(l) if g is None else g for g, l in zip(gs, leaves)], [t.detach() for t in ys]


def gap(a, b):
    worst = 0.0
    for x, y in zip(a, b):
        if x.numel() == 0:
            continue
        d = (x - y).abs().max().item()
        s = 1.0 + max(x.abs().max().item(), y.abs().max().item())
        d = d / s
        if d != d:
            return float("inf")
        worst = max(worst, d)
    return worst


def check_right(case):
    obj = load("right", case)
    bad = []
    many = [("inputs", case["inputs"])] + [("more%d" % i, m) for i, m in enumerate(case["more"])]
    if case["shows"] is not case["inputs"]:
        many.append(("shows", case["shows"]))
    for label, make_in in many:
        args = make_in()
        num = numeric(case, obj, args)
        num1 = numeric(case, obj, args, ones=True)
        todo = [("keep", {}), ("plain", {}), ("contig", {}), ("strided", {}), ("two calls", {}), ("warm", {}), ("twice", {})]
        for mode, kw in todo:
            try:
                d = gap(analytic(case, obj, args, mode)[0], num)
                if d > TOL:
                    bad.append("%s/%s gap %.2g" % (label, mode, d))
            except Exception as e:
                bad.append("%s/%s %s: %s" % (label, mode, type(e).__name__, e))
        try:
            d = gap(analytic(case, obj, args, "plain", ones=True)[0], num1)
            if d > TOL:
                bad.append("%s/ones gap %.2g" % (label, d))
        except Exception as e:
            bad.append("%s/ones %s: %s" % (label, type(e).__name__, e))
        n = sum(t.requires_grad for t in flat(args))
        for i in range(n):
            try:
                d = gap(analytic(case, obj, args, "plain", only=i)[0], [num[i]])
                if d > TOL:
                    bad.append("%s/only%d gap %.2g" % (label, i, d))
            except Exception as e:
                bad.append("%s/only%d %s: %s" % (label, i, type(e).__name__, e))
        try:
            g32 = analytic(case, obj, args, "plain", dtype=torch.float32)[0]
            d = gap([g.to(n.dtype) for g, n in zip(g32, num)], num)
            if d > 2e-3:
                bad.append("%s/float32 gap %.2g" % (label, d))
        except Exception as e:
            bad.append("%s/float32 %s: %s" % (label, type(e).__name__, e))
        if case["second"]:
            f, params, m = build(case, obj)
            state = {k: b.clone() for k, b in m.named_buffers()} if m is not None else {}
            a = rebuild(args, lambda t: t.detach().clone().requires_grad_(t.requires_grad))
            ts = [t for t in flat(a) if t.requires_grad] + params

            def g(*xs):
                with torch.no_grad():
                    restore(m, state)
                it = iter(xs)
                b = rebuild(a, lambda t: next(it) if t.requires_grad else t)
                r = [t for t in outs(f(*b)) if t.requires_grad]
                return tuple(r)
            try:
                torch.autograd.gradgradcheck(g, ts, atol=1e-4, rtol=1e-3)
            except Exception as e:
                bad.append("%s/second order %s: %s" % (label, type(e).__name__, str(e)[:300]))
    return bad


def double(case, obj):
    """Second order: gradients of a fixed combination of the first ones."""
    f, params, m = build(case, obj)
    a = rebuild(case["inputs"](), lambda t: t.detach().clone().requires_grad_(t.requires_grad))
    leaves = [t for t in flat(a) if t.requires_grad] + params
    ys = [t for t in outs(f(*a)) if t.requires_grad]
    cs = [c.requires_grad_() for c in cot(ys, 5)]
    given = [c * 1.0 for c in cs]
    gs = torch.autograd.grad(ys, leaves, given, create_graph=True, allow_unused=True)
    keep = [(g, w) for g, w in zip(gs, cot(leaves, 6)) if g is not None and g.requires_grad]
    dd = torch.autograd.grad([g for g, _ in keep], leaves + cs, [w for _, w in keep], allow_unused=True)
    return [torch.zeros_like(t) if d is None else d for d, t in zip(dd, leaves + cs)]


def check_second(case):
    """does the wrong twin's second derivative differ?"""
    if not case["second"]:
        return False
    R, W = load("right", case), load("wrong", case)
    return gap(double(case, R), double(case, W)) > 1e-3


def check_wrong(case):
    R, W = load("right", case), load("wrong", case)
    seen = []
    for label, make_in in (("inputs", case["inputs"]), ("shows", case["shows"])):
        if label == "shows" and case["shows"] is case["inputs"]:
            continue
        args = make_in()
        num = numeric(case, R, args)
        for mode in ("warm", "keep", "plain", "contig", "strided", "two calls", "twice"):
            try:
                g, y = analytic(case, W, args, mode)
                y2 = analytic(case, R, args, mode)[1]
                if gap(y, y2) > 1e-12:
                    seen.append("%s/%s FORWARD DIFFERS" % (label, mode))
                if gap(g, num) > 1e-3:
                    seen.append("%s/%s" % (label, mode))
            except Exception as e:
                seen.append("%s/%s(%s)" % (label, mode, str(e)[:60]))
    return seen


def main():
    names = sys.argv[1:]
    fail = 0
    for case in CASES:
        if names and case["name"] not in names:
            continue
        try:
            bad = check_right(case)
            seen = check_wrong(case)
            second = check_second(case)
        except Exception as e:
            import traceback
            traceback.print_exc()
            bad, seen, second = ["raised %r" % e], [], False
        measured = {(1, 1): "both", (1, 0): "first", (0, 1): "second", (0, 0): "nothing"}[bool(seen), bool(second)]
        if measured != case["order"]:
            bad.append("order: written %s, measured %s" % (case["order"], measured))
        ok = not bad and (seen or second) and not any("FORWARD" in s for s in seen)
        quiet = ok and "inputs/keep" not in seen
        fail += not ok
        print("%-28s %s%s" % (case["name"], "ok" if ok else "FAIL", "  (not in one plain backward)" if quiet else ""),
              "" if ok and not quiet else " shown: %s" % seen, flush=True)
        for b in bad[:8]:
            print("      right:", b)
    print("%d cases, %d failing" % (len([c for c in CASES if not names or c["name"] in names]), fail))
    sys.exit(bool(fail))


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
