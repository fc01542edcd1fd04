"""Proves by central differences that the right operators are right and the wrong ones wrong.

usage: verify.py [NAME ...]

Complex tensors are taken as pairs of real ones throughout.  First order: the gradients of a random
combination of the outputs, in several situations.  Second order: the differences of the (proven)
first-order gradients, over the inputs and the incoming gradient.
"""

import importlib.util
import sys
import traceback
from pathlib import Path

import torch
from written import CASES  # the file beside this one, which is run as a program

HERE = Path(__file__).resolve().parent
sys.dont_write_bytecode = True

STEP = 1e-5
CLOSE = 3e-7  # the fourth-order quotient below is good to about 1e-9
APART = 1e-3


def load(side, row):
    spec = importlib.util.spec_from_file_location(
        f"u_{side}_{row['name']}", HERE / side / f"{row['name']}.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, row["object"])


def tensors(x):
    if isinstance(x, torch.Tensor):
        return [x]
    if isinstance(x, (list, tuple)):
        return [t for y in x for t in tensors(y)]
    return []


def swap(x, it):
    if isinstance(x, torch.Tensor):
        return next(it)
    if isinstance(x, (list, tuple)):
        return type(x)(swap(y, it) for y in x)
    return x


def real(t):
    return torch.view_as_real(t) if t.is_complex() else t


class Problem:
    """One operator at one set of arguments, as a function of a list of real leaves."""

    def __init__(self, row, obj, args, layout="as given", grads=None, dtype=None):
        self.args, self.layout, self.dtype = args, layout, dtype
        self.module = None
        self.params = []
        if "make" in row:
            self.module = row["make"](obj)
            if dtype:
                self.module.to(dtype)
            self.params = [p for p in self.module.parameters() if p.requires_grad]
            self.buffers = {k: b.clone() for k, b in self.module.named_buffers()}
        self.call = self.module if self.module is not None else obj.apply
        given = tensors(args)
        self.wants = [t.requires_grad for t in given]
        if grads is not None:
            which = [i for i, w in enumerate(self.wants) if w]
            self.wants = [i in [which[j] for j in grads] for i in range(len(given))]
        self.fixed = given

    def leaves(self):
        out = []
        for t, w in zip(self.fixed, self.wants):
            if w:
                v = real(t.detach()).clone(memory_format=torch.preserve_format)
                if self.dtype:
                    v = v.to(self.dtype)
                out.append(v.requires_grad_())
        return out + self.params

    def reset(self):
        if self.module is not None:
            with torch.no_grad():
                for k, b in self.module.named_buffers():
                    if not torch.equal(b, self.buffers[k]):
                        b.copy_(self.buffers[k])

    def run(self, leaves, keep=False):
        if not keep:
            self.reset()
        it = iter(leaves)
        new = []
        for t, w in zip(self.fixed, self.wants):
            if w:
                v = next(it)
                if t.is_complex():
                    v = torch.view_as_complex(v.contiguous())
            else:
                v = t.detach().clone()
                if self.dtype and v.is_floating_point():
                    v = v.to(self.dtype)
                if self.dtype and v.is_complex():
                    v = v.to(torch.complex64)
            if self.layout == "strided" and v.dim() and v.numel():
                v = v.movedim(0, -1).contiguous().movedim(-1, 0) if v.dim() > 1 else torch.stack([v, v], 1)[:, 0]
            new.append(v)
        self.seen = [(v, v.detach().clone()) for v in new]
        y = self.call(*swap(self.args, iter(new)))
        outs = tensors(y)
        return [real(t) for t in outs if (t.is_floating_point() or t.is_complex())]

    def unchanged(self):
        return all(torch.equal(v.detach(), b) for v, b in self.seen)


def cotangents(ys, seed=11):
    g = torch.Generator().manual_seed(seed)
    return [torch.randn(y.shape, generator=g, dtype=torch.float64).to(y.dtype) for y in ys]


def quotient(fn, leaves, h=STEP):
    """Fourth-order central differences of the number fn(leaves) by every entry of every leaf."""
    base = [t.detach().clone() for t in leaves]
    out = []
    for t in base:
        g = torch.zeros_like(t).reshape(-1)
        v = t.reshape(-1) if t.is_contiguous() else None
        for i in range(t.numel()):
            if v is None:
                idx = torch.unravel_index(torch.tensor(i), t.shape)
                old = t[idx].clone()

                def put(x, t=t, idx=idx):
                    t[idx] = x
            else:
                old = v[i].clone()

                def put(x, v=v, i=i):
                    v[i] = x
            d = []
            for k in (1, -1, 2, -2):
                put(old + k * h)
                d.append(fn(base))
            put(old)
            g[i] = (8 * (d[0] - d[1]) - (d[2] - d[3])) / (12 * h)
        out.append(g.reshape(t.shape))
    return out


def numeric(row, obj, args, cot="random"):
    p = Problem(row, obj, args)
    start = p.leaves()
    probe = p.run(start)
    cs = cotangents(probe) if cot == "random" else [torch.ones_like(y) for y in probe]
    cs = [c if y.requires_grad else torch.zeros_like(c) for c, y in zip(cs, probe)]
    n = len(start) - len(p.params)

    def fn(base):
        with torch.no_grad():
            saved = [q.detach().clone() for q in p.params]
            for q, b in zip(p.params, base[n:]):
                q.copy_(b)
            v = sum((c * y).sum() for c, y in zip(cs, p.run(base[:n] + p.params))).item()
            for q, s in zip(p.params, saved):
                q.copy_(s)
        return v

    return quotient(fn, start)


def grads(p, how="plain", cot="random"):
    xs = p.leaves()
    if how == "before":  # the same operator ran before, with other values
        ys = p.run([(x.detach() * 0.9 + 0.01).requires_grad_() for x in xs[: len(xs) - len(p.params)]] + p.params)
        sum(y.sum() for y in ys if y.requires_grad).backward()
        for q in p.params:
            q.grad = None
    ys = p.run(xs)
    if not p.unchanged():
        raise AssertionError("forward changed an argument")
    if how == "between":  # ... and again between forward and backward
        p.run([(x.detach() * 0.9 + 0.01).requires_grad_() for x in xs[: len(xs) - len(p.params)]] + p.params)
    cs = cotangents(ys) if cot == "random" else [torch.ones((), dtype=y.dtype).expand(y.shape) for y in ys]
    if how == "sliced":
        cs = [torch.stack([c, c], -1)[..., 0] for c in cs]
    pairs = [(y, c) for y, c in zip(ys, cs) if y.requires_grad]
    kept = [c.clone() for _, c in pairs]
    if how == "twice":
        torch.autograd.grad([y for y, _ in pairs], xs, [c for _, c in pairs], retain_graph=True, allow_unused=True)
    gs = torch.autograd.grad([y for y, _ in pairs], xs, [c for _, c in pairs], allow_unused=True)
    if not all(torch.equal(c, k) for (_, c), k in zip(pairs, kept)):
        raise AssertionError("backward changed the incoming gradient")
    if how != "between" and not p.unchanged():
        raise AssertionError("backward changed an argument")
    return [torch.zeros_like(x) if g is None else g for g, x in zip(gs, xs)]


def gap(a, b):
    worst = 0.0
    for x, y in zip(a, b):
        if x.numel():
            d = ((x - y).abs().max() / (1 + y.abs().max())).item()
            worst = max(worst, d if d == d else float("inf"))
    return worst


SITUATIONS = [("plain", "as given"), ("before", "as given"), ("between", "as given"), ("twice", "as given"),
              ("sliced", "as given"), ("plain", "strided")]


def first(row, obj, args, num, num1, close):
    """Situations in which the gradients are not those of ``num``."""
    bad = []

    def test(label, fn, want, tol):
        try:
            d = gap(fn(), want)
            if d > tol:
                bad.append(f"{label} {d:.1e}")
        except Exception as e:
            bad.append(f"{label} {type(e).__name__}: {str(e)[:90]}")

    for how, layout in SITUATIONS:
        test(f"{how}/{layout}", lambda: grads(Problem(row, obj, args, layout), how), num, close)
    test("expanded ones", lambda: grads(Problem(row, obj, args), cot="ones"), num1, close)
    n = sum(t.requires_grad for t in tensors(args))
    for i in range(n) if n > 1 else []:
        test(f"only {i}", lambda: grads(Problem(row, obj, args, grads=[i]))[:1], num[i : i + 1], close)
        rest = [j for j in range(n) if j != i]
        test(f"all but {i}", lambda: grads(Problem(row, obj, args, grads=rest))[: n - 1], [num[j] for j in rest], close)
    return bad


def twice(row, obj, args, close):
    """Is the derivative of the operator's own gradients what its double backward says?"""
    p = Problem(row, obj, args)
    xs = p.leaves()
    n = len(xs) - len(p.params)
    ys = p.run(xs)
    live = [y.requires_grad for y in ys]
    cs = [c.requires_grad_() for c, l in zip(cotangents(ys), live) if l]
    ws = cotangents(xs, 5)

    def inner(vals, cvals, create):
        ys = [y for y, l in zip(p.run(vals), live) if l]
        gs = torch.autograd.grad(ys, vals, cvals, create_graph=create, allow_unused=True)
        return sum((g * w).sum() for g, w in zip(gs, ws) if g is not None)

    s = inner(xs, cs, True)
    if isinstance(s, torch.Tensor) and s.requires_grad:
        got = torch.autograd.grad(s, xs + cs, allow_unused=True)
    else:
        got = [None] * (len(xs) + len(cs))
    got = [torch.zeros_like(t) if g is None else g for g, t in zip(got, xs + cs)]

    def fn(base):
        vals = [b.clone().requires_grad_() for b in base[:n]]
        with torch.no_grad():
            saved = [q.detach().clone() for q in p.params]
            for q, b in zip(p.params, base[n : len(xs)]):
                q.copy_(b)
        v = inner(vals + p.params, base[len(xs) :], False)
        with torch.no_grad():
            for q, b in zip(p.params, saved):
                q.copy_(b)
        return v.item()

    return gap(got, quotient(fn, xs + cs)) > close


def judge(row):
    bad, seen = [], []
    right, wrong = load("right", row), load("wrong", row)
    once = "once_differentiable" in (HERE / "right" / f"{row['name']}.py").read_text()
    for i, make in enumerate([row["inputs"], *row["more"]]):
        args = make()
        num, num1 = numeric(row, right, args), numeric(row, right, args, "ones")
        bad += [f"{i}: {b}" for b in first(row, right, args, num, num1, CLOSE)]
        p32 = Problem(row, right, args, dtype=torch.float32)
        try:
            g32 = grads(p32)
            if [g.dtype for g in g32] != [torch.float32] * len(g32) or gap([g.double() for g in g32], num) > 2e-3:
                bad.append(f"{i}: float32")
        except Exception as e:
            bad.append(f"{i}: float32 {e}")
        if not once and twice(row, right, args, 1e-5):
            bad.append(f"{i}: second order")
        if i == 0:
            seen = first(row, wrong, args, num, num1, APART)
            same = gap([y.detach() for y in Problem(row, wrong, args).run(Problem(row, wrong, args).leaves())],
                       [y.detach() for y in Problem(row, right, args).run(Problem(row, right, args).leaves())])
            if same > 1e-12:
                bad.append("forward differs")
            second = not seen and not once and twice(row, wrong, args, APART)
    order = "first" if seen else "second" if second else "nothing"
    if order != row["order"]:
        bad.append(f"order is written {row['order']}, measured {order}")
    return bad, seen


def main():
    names = sys.argv[1:]
    assert len({r["name"] for r in CASES}) == len(CASES)
    assert names or {r["name"] for r in CASES} == {f.stem for f in (HERE / "right").glob("*.py")} == {f.stem for f in (HERE / "wrong").glob("*.py")}
    rows = [r for r in CASES if not names or r["name"] in names]
    failing = 0
    for row in rows:
        try:
            bad, seen = judge(row)
        except Exception:
            bad, seen = [traceback.format_exc()], []
        failing += bool(bad)
        plain = any(s.startswith("plain/as") for s in seen)
        print(f"{row['name']:24s} {'FAIL' if bad else 'ok'}", "" if plain or row["order"] == "second" else f"(shown only by: {seen})", flush=True)
        for b in bad[:8]:
            print("     ", b)
    print(f"{len(rows)} cases, {failing} failing")
    return failing


if __name__ == "__main__":
    torch.set_num_threads(1)
    sys.exit(bool(main()))
