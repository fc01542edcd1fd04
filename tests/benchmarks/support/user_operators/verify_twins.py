"""Prove by central differences that right/ is right and wrong/ is wrong.

    python verify_twins.py SET [NAME ...]

for sets whose folders have no ``verify.py`` of their own.

An operator with a straight-through estimator names in written.py a ``surrogate``: from the
arguments it makes the function whose true derivative the operator declares as its own. Every file
is loaded once: an operator of torch.library that is registered anew takes away the one before.
"""

import functools
import importlib.util
import sys
import warnings
from pathlib import Path

import torch

sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent / sys.argv[1]
STEP, NEAR, FAR = 1e-6, 3e-6, 1e-3


@functools.cache
def module_at(path):
    name = "_".join((HERE.name, path.parent.name, path.stem))
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def load(side, case):
    return getattr(module_at(HERE / side / (case["name"] + ".py")), case["object"])


def walk(x):
    if isinstance(x, torch.Tensor):
        yield x
    elif isinstance(x, (tuple, list)):
        for y in x:
            yield from walk(y)


def change(x, fn):
    if isinstance(x, torch.Tensor):
        return fn(x)
    return type(x)(change(y, fn) for y in x) if isinstance(x, (tuple, list)) else x


def copied(args, pre=lambda v: v):
    return change(args, lambda t: pre(t.detach().clone()).requires_grad_(t.requires_grad))


def strided(v):
    if v.dim() == 0 or v.numel() == 0:
        return v
    if v.dim() == 1:
        return torch.stack([v, torch.full_like(v, 7)], 1)[:, 0]
    return v.transpose(0, -1).contiguous().transpose(0, -1)


def make(case, obj, dtype=None):
    """-> what to call, its parameters, a reset of its buffers"""
    if case["kind"] == "callable":
        return obj, [], lambda: None
    if case["kind"] != "module":
        return obj.apply, [], lambda: None
    m = case["make"](obj)
    if dtype:
        m = m.to(dtype)
    kept = {k: b.clone() for k, b in m.named_buffers()}

    def reset():
        with torch.no_grad():
            for k, b in m.named_buffers():
                if not torch.equal(b, kept[k]):
                    b.copy_(kept[k])

    return m, [p for p in m.parameters() if p.requires_grad], reset


def results(y):
    return [t for t in walk(y) if t.is_floating_point() or t.is_complex()]


def weights(ys, seed=3):
    g = torch.Generator().manual_seed(seed)
    return [torch.randn(y.shape, generator=g, dtype=torch.complex128 if y.is_complex() else torch.float64)
            for y in ys]


def numeric(case, args, ones=False):
    f, params, reset = make(case, load("right", case))
    own = [f] if case["kind"] == "module" else []
    base = copied(args)
    mask = [y.requires_grad for y in results(f(*copied(args)))]
    if "surrogate" in case:
        f = case["surrogate"](*own, *change(args, lambda t: t.detach().clone()))
    leaves = [t for t in walk(base) if t.requires_grad] + params
    with torch.no_grad():

        def value():
            reset()
            ys = results(f(*change(base, lambda t: t.detach().clone())))
            cs = [torch.ones_like(y) for y in ys] if ones else weights(ys)
            return sum(float((c.conj() * y).real.sum()) for y, c, m in zip(ys, cs, mask) if m)

        found = []
        for leaf in leaves:
            g = torch.zeros_like(leaf)
            for i in range(leaf.numel()):
                at = tuple(int(k) for k in torch.unravel_index(torch.tensor(i), leaf.shape)) if leaf.dim() else ()
                for unit in (1.0, 1j) if leaf.is_complex() else (1.0,):
                    old = leaf.data[at].clone()
                    leaf.data[at] = old + STEP * unit
                    up = value()
                    leaf.data[at] = old - STEP * unit
                    down = value()
                    leaf.data[at] = old
                    g[at] += unit * (up - down) / (2 * STEP)
            found.append(g)
    return found


def analytic(case, obj, args, way="plain", only=None):
    dtype = torch.float32 if way == "single" else None
    f, params, reset = make(case, obj, dtype)

    def pre(v):
        if way == "strided":
            return strided(v)
        if dtype and v.is_floating_point():
            return v.float()
        return v.to(torch.complex64) if dtype and v.is_complex() else v

    a = copied(args, pre)
    leaves = [t for t in walk(a) if t.requires_grad]
    if only is None:
        leaves += params
    else:
        for t in leaves[:only] + leaves[only + 1:] + params:
            t.requires_grad_(False)
        leaves = [leaves[only]]
    if way == "used before":
        other = change(a, lambda t: (t.detach() * 0.9 + 0.01).requires_grad_() if t.requires_grad else t)
        first = [t for t in results(f(*other)) if t.requires_grad]
        sum(t.abs().sum() for t in first).backward()
        reset()
    before = [t.detach().clone() for t in walk(a)]
    ys = results(f(*a))
    if way == "two calls":
        f(*change(a, lambda t: (t.detach() * 0.9 + 0.01).requires_grad_() if t.requires_grad else t))
    cs = [c.to(y.dtype) for c, y in zip(weights(ys), ys)]
    if way == "strided":
        cs = [strided(c) for c in cs]
    if way == "ones":
        cs = [torch.ones((), dtype=y.dtype).expand(y.shape) for y in ys]
    used = [(y, c) for y, c in zip(ys, cs) if y.requires_grad]
    ys_, cs = [y for y, _ in used], [c for _, c in used]
    kept = [c.clone() for c in cs]
    if way == "twice":
        torch.autograd.grad(ys_, leaves, [c.clone() for c in cs], allow_unused=True, retain_graph=True)
    gs = torch.autograd.grad(ys_, leaves, cs, allow_unused=True)
    if not all(torch.equal(c, k) for c, k in zip(cs, kept)):
        raise AssertionError("the incoming gradient was changed")
    if not all(torch.equal(t.detach(), k) for t, k in zip(walk(a), before)):
        raise AssertionError("an input was changed")
    for g, t in zip(gs, leaves):
        if g is not None and (g.shape != t.shape or g.dtype != t.dtype):
            raise AssertionError("shape or dtype of a gradient")
    return [torch.zeros_like(t) if g is None else g for g, t in zip(gs, leaves)], [y.detach() for y in ys]


def gap(a, b):
    worst = 0.0
    for x, y in zip(a, b, strict=True):
        if x.numel():
            d = float((x - y).abs().max() / (1 + y.abs().max()))
            worst = max(worst, d if d == d else float("inf"))
    return worst


WAYS = ("plain", "strided", "two calls", "used before", "twice")


def once(case):
    return "once_differentiable" in (HERE / "right" / (case["name"] + ".py")).read_text()


def second_numeric(case, obj, args):
    f, params, reset = make(case, obj)
    a = copied(args)
    leaves = [t for t in walk(a) if t.requires_grad] + params

    def g(*given):
        reset()
        it = iter(given)
        return tuple(t for t in results(f(*change(a, lambda t: next(it) if t.requires_grad else t))) if t.requires_grad)

    torch.autograd.gradgradcheck(g, leaves, atol=1e-4, rtol=1e-3)


def check_right(case):
    obj, bad = load("right", case), []
    for k, given in enumerate([case["inputs"], *case["more"]]):
        args = given()
        num, one = numeric(case, args), numeric(case, args, ones=True)
        n = sum(t.requires_grad for t in walk(args))
        for way in (*WAYS, "ones", "single", *range(n)):
            try:
                if isinstance(way, int):
                    d = gap(analytic(case, obj, args, only=way)[0], [num[way]])
                else:
                    d = gap([g.to(x.dtype) for g, x in zip(analytic(case, obj, args, way)[0], one if way == "ones" else num)],
                            one if way == "ones" else num)
                if d > (2e-3 if way == "single" else NEAR):
                    bad.append(f"{k}/{way}: {d:.2g}")
            except Exception as e:
                bad.append(f"{k}/{way}: {type(e).__name__}: {str(e)[:200]}")
        if not once(case):
            try:
                second_numeric(case, obj, args)
            except Exception as e:
                bad.append(f"{k}/second: {str(e)[:400]}")
    return bad


def check_wrong(case):
    """-> how it shows at first order, how at second, and whether forward is the same"""
    R, W = load("right", case), load("wrong", case)
    args = case["inputs"]()
    num, first, same = numeric(case, args), [], True
    for way in WAYS:
        try:
            g, y = analytic(case, W, args, way)
            same &= gap(y, analytic(case, R, args, way)[1]) < 1e-12
            if gap(g, num) > FAR:
                first.append(way)
        except Exception as e:
            first.append(f"{way} ({str(e)[:50]})")
    second = []
    if not first and not once(case):
        try:
            second_numeric(case, W, args)
        except Exception as e:
            second.append(str(e)[:60])
    return first, second, same


def main(names):
    failing = 0
    chosen = [c for c in module_at(HERE / "written.py").CASES if not names or c["name"] in names]
    for case in chosen:
        try:
            bad = check_right(case)
            first, second, same = check_wrong(case)
            if not same:
                bad.append("the twins' outputs differ")
            shown = "first" if first else "second" if second else "nothing"
            if shown != case["order"]:
                bad.append(f"order: written {case['order']}, shown {shown} {first}")
        except Exception as e:
            bad, first = [f"raised {type(e).__name__}: {e}"], ["plain"]
        failing += bool(bad)
        print(f"{case['name']:24s} {'FAIL' if bad else 'ok'}{'' if not first or 'plain' in first else '  by ' + str(first)}", flush=True)
        for b in bad[:5]:
            print("     ", b)
    print(f"{len(chosen)} pairs, {failing} failing")
    return failing


if __name__ == "__main__":
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    sys.exit(bool(main(sys.argv[2:])))
