import collections, importlib.util, os, sys, warnings
import torch
from torch.autograd import gradcheck, gradgradcheck

torch.set_num_threads(1)
warnings.filterwarnings("ignore")
HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
import cases


def load(side, group):
    spec = importlib.util.spec_from_file_location(f"{side}_{group}", f"{HERE}/{side}/{group}.py")
    m = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(m)
    return m


def build(side, case):
    """-> (fn over flat args, args); module parameters are put behind the inputs."""
    cls = getattr(load(side, case["group"]), case["name"])
    args = tuple(getattr(cases, case["inputs"])())
    if issubclass(cls, torch.nn.Module):
        m = case["make"](cls)
        names = [n for n, _ in m.named_parameters()]
        ps = tuple(p.detach().clone().requires_grad_() for p in m.parameters())
        k = len(args)
        fn = lambda *a: torch.func.functional_call(m, dict(zip(names, a[k:])), a[:k])
        return fn, args + ps
    return cls.apply, args


def tens(o):
    return [t for t in (o if isinstance(o, tuple) else (o,)) if t.is_floating_point() or t.is_complex()]


def diffs(a):
    return [t for t in a if torch.is_tensor(t) and t.requires_grad]


def first(side, case):
    """Gradients for fixed random incoming gradients, and whether anything got changed."""
    fn, a = build(side, case)
    outs = tens(fn(*a))
    torch.manual_seed(7)
    gs = [torch.randn_like(o) for o in outs]
    olds = [t.detach().clone() for t in diffs(a) + gs]
    grads = torch.autograd.grad(outs, diffs(a), gs, allow_unused=True)
    changed = any(not torch.equal(x.detach(), y) for x, y in zip(diffs(a) + gs, olds))
    return [o.detach() for o in outs], grads, changed


def second(side, case):
    fn, a = build(side, case)
    outs = tens(fn(*a))
    torch.manual_seed(7)
    gs = [torch.randn_like(o).requires_grad_() for o in outs]
    torch.manual_seed(8)
    grads = torch.autograd.grad(outs, diffs(a), gs, create_graph=True, allow_unused=True)
    use = [g for g in grads if g is not None and g.requires_grad]
    vs = [torch.randn_like(g) for g in use]
    return torch.autograd.grad(use, diffs(a) + gs, vs, allow_unused=True)


def differ(r, w):
    for x, y in zip(r, w):
        if x is None and y is None:
            continue
        if x is None or y is None:
            z = x if y is None else y
            if z.abs().max() > 1e-9:
                return "None for a gradient"
            continue
        if x.shape != y.shape:
            return "shape"
        if not torch.isfinite(torch.view_as_real(y) if y.is_complex() else y).all():
            return "not finite"
        d = (x - y).abs().max() / x.abs().max().clamp(min=1e-12)
        if d > 1e-3:
            return f"differs by {float(d):.2g}"
    return None


def tried(f, *a):
    try:
        return f(*a), None
    except Exception as e:
        return None, f"raises {type(e).__name__}: {str(e).splitlines()[0][:70]}"


bad = 0
kinds = collections.Counter()
for c in cases.CASES:
    notes, ok = [], True
    fn, a = build("right", c)
    kw = dict(eps=1e-6, atol=1e-5, rtol=1e-4)
    if c["name"] == "RecencyDecay":      # half_life is 1800: gradient of it is ~1e-4, step 1e-6 too small
        kw = dict(eps=1e-3, atol=1e-7, rtol=1e-4)
    g, err = tried(lambda: gradcheck(fn, a, fast_mode=False, **kw))
    if err:
        ok = False
        notes.append("RIGHT gradcheck " + err)
    if c["second_order_right"] is not None:
        g2, err = tried(lambda: gradgradcheck(fn, a, fast_mode=False, **kw))
        if bool(err) == c["second_order_right"]:
            ok = False
            notes.append(f"RIGHT gradgradcheck {err} but marked {c['second_order_right']}")
    # the right one with an expanded gradient, with inputs of another layout, and in float32
    for how in ("plain", "strided", "float32"):
        fn2, b = build("right", c)
        def relaid(t):
            if not torch.is_tensor(t):
                return t
            if how == "strided" and t.dim() > 1:
                u = t.detach().transpose(0, -1).contiguous().transpose(0, -1)
                return u.requires_grad_(t.requires_grad)
            if how == "float32" and (t.is_floating_point() or t.is_complex()):
                u = t.detach().to(torch.complex64 if t.is_complex() else torch.float32)
                return u.requires_grad_(t.requires_grad)
            return t
        if how == "float32" and "make" in c:     # buffers would stay float64
            continue
        b = tuple(relaid(t) for t in b)
        outs = tens(fn2(*b))
        tot = sum(o.sum().real for o in outs) + 0.0      # expanded incoming gradient
        tot2 = sum(o.abs().pow(2).sum() for o in outs)
        cur, err = tried(torch.autograd.grad, tot, diffs(b), None, True)
        cur2, err2 = tried(torch.autograd.grad, tot2, diffs(b))
        err = err or err2
        if err:
            ok = False
            notes.append(f"RIGHT {how}: {err}")
            continue
        if how == "plain":
            ref, ref2 = cur, cur2
        same = all(torch.allclose(x.to(y.dtype), y, rtol=1e-3, atol=1e-5) for x, y in zip(cur + cur2, ref + ref2))
        if not same:
            ok = False
            notes.append(f"RIGHT {how}: other gradients")
    # right one again, and not mutating
    ro, rg, ch = first("right", c)
    if ch or differ(rg, rg):
        ok = False
        notes.append("RIGHT changes or is not finite")
    res, err = tried(first, "wrong", c)
    if err:
        f1 = err
    else:
        wo, wg, ch = res
        if any(not torch.equal(x, y) for x, y in zip(ro, wo)):
            ok = False
            notes.append("forward differs")
        f1 = differ(rg, wg) or ("changes its inputs or grad_output" if ch else None)
    f2 = None
    if c["second_order_right"]:
        r2, e0 = tried(second, "right", c)
        assert e0 is None or c["shows"] != "second", (c["name"], e0)
        if e0 is None:
            w2, err = tried(second, "wrong", c)
            f2 = err or differ(r2, w2)
    if (c["shows"] in ("first", "both")) != bool(f1):
        ok = False
        notes.append(f"shows={c['shows']} but first: {f1}")
    if c["shows"] in ("second", "both") and not f2:
        ok = False
        notes.append(f"shows={c['shows']} but second: {f2}")
    kinds[c["kind"]] += 1
    bad += not ok
    print(f"{'ok ' if ok else 'BAD'} {c['group']:9} {c['name']:20} 1st: {f1} | 2nd: {f2} {'; '.join(notes)}")
print()
for k, n in kinds.most_common():
    print(n, k)
assert max(kinds.values()) <= 6
for g in sorted({c["group"] for c in cases.CASES}):
    r, w = (open(f"{HERE}/{s}/{g}.py").read().splitlines() for s in ("right", "wrong"))
    n = sum(x != y for x, y in zip(r, w))
    print(g, "lines", len(r), len(w), "that differ", n)
    bad += len(r) != len(w) or n != 10
print(len(cases.CASES), "cases,", "ALL HOLD" if not bad else f"{bad} BAD")
sys.exit(bool(bad))
