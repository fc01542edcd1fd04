"""Proves the set: python verify.py [NAME ...]

Each right operator against central differences of its own forward (against ``like``, for those
that declare another gradient than their forward's), in every way of calling it that comes to mind;
its second derivative by gradgradcheck unless it is once_differentiable.  Each wrong one has to
fail where ``order`` says so, with the very same forward.
"""
import importlib.util
import pathlib
import sys
import traceback

import torch
from torch.autograd import grad as autograd_grad

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).parent
from written import CASES  # run as a script, from this folder

STEP = 1e-6


def load(side, row):
    path = HERE / side / f"{row['name']}.py"
    spec = importlib.util.spec_from_file_location(f"{side}_{row['name']}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, row["object"])


def tensors(x):
    if isinstance(x, torch.Tensor):
        yield x
    elif isinstance(x, (list, tuple)):
        for y in x:
            yield from tensors(y)


def mapped(x, fn):
    if isinstance(x, torch.Tensor):
        return fn(x)
    if isinstance(x, (list, tuple)):
        return type(x)(mapped(y, fn) for y in x)
    return x


def differentiable(ys):
    return [y for y in tensors(ys) if y.is_floating_point() or y.is_complex()]


class Run:
    """One instance of an operator, with its parameters; buffers are put back before each call."""

    def __init__(self, row, cls, dtype=None):
        self.module = row["make"](cls) if "make" in row else None
        if self.module is not None and dtype is not None:
            self.module.to(dtype)
        self.params = [] if self.module is None else [
            p for p in self.module.parameters() if p.requires_grad]
        self.buffers = {} if self.module is None else {
            k: b.clone() for k, b in self.module.named_buffers()}
        self.fn = cls.apply if self.module is None else self.module

    def __call__(self, *args):
        with torch.no_grad():
            for k, b in (self.module.named_buffers() if self.module is not None else ()):
                if not torch.equal(b, self.buffers[k]):
                    b.copy_(self.buffers[k])
        return self.fn(*args)


def weights(ys, seed):
    g = torch.Generator().manual_seed(seed)
    return [torch.randn(y.shape, generator=g, dtype=torch.complex128 if y.is_complex() else torch.float64
                        ).to(y.dtype) for y in ys]


def fresh(args, change=lambda t: t.clone()):
    return mapped(args, lambda t: change(t.detach()).requires_grad_(t.requires_grad))


def central(row, cls, args, ones=False):
    """d sum(w * out) / d input for each input that wants one, each parameter."""
    like = row.get("like")
    run = Run(row, cls)
    asks = [y.requires_grad for y in differentiable(Run(row, cls)(*fresh(args)))]
    if like:  # what it declares, by autograd: the rounding is a constant there
        a = fresh(args)
        ys = [like(*a)]
        ws = [torch.ones_like(y) for y in ys] if ones else weights(ys, 11)
        return list(autograd_grad(ys, [t for t in tensors(a) if t.requires_grad], ws))
    base = mapped(args, lambda t: t.detach().clone(memory_format=torch.contiguous_format))
    points = [b for b, t in zip(tensors(base), tensors(args)) if t.requires_grad] + [p.data for p in run.params]
    results = []
    with torch.no_grad():
        def value():
            ys = differentiable(run(*mapped(base, torch.clone)))
            ws = [torch.ones_like(y) for y in ys] if ones else weights(ys, 11)
            return sum(float((w.conj() * y).real.sum()) for w, y, a in zip(ws, ys, asks) if a)
        for p in points:
            d = torch.zeros_like(p)
            flat, dflat = p.view(-1), d.view(-1)
            for i in range(flat.numel()):
                for unit in (1, 1j) if p.is_complex() else (1,):
                    was = flat[i].clone()
                    flat[i] = was + unit * STEP
                    up = value()
                    flat[i] = was - unit * STEP
                    down = value()
                    flat[i] = was
                    dflat[i] += unit * (up - down) / (2 * STEP)
            results.append(d)
    return results


def gaps(t):
    """the same values, laid out otherwise in memory"""
    if t.dim() == 0 or t.numel() == 0:
        return t.clone()
    wide = torch.full((*t.shape[:-1], 2 * t.shape[-1] + 1), 3, dtype=t.dtype)
    wide[..., 1::2] = t
    return wide[..., 1::2]


def turned(t):
    return t.transpose(0, -1).contiguous().transpose(0, -1) if t.dim() > 1 else t.clone()


def ours(row, cls, args, how="plain", only=None, dtype=None, ones=False):
    run = Run(row, cls, dtype)

    def change(t):
        if dtype is not None and t.is_floating_point():
            t = t.to(dtype)
        if dtype is not None and t.is_complex():
            t = t.to(torch.complex64)
        if how == "gaps":
            return gaps(t)
        return turned(t) if how == "turned" else t.clone()

    a = fresh(args, change)
    leaves = [t for t in tensors(a) if t.requires_grad] + run.params
    if only is not None:
        for i, t in enumerate(leaves):
            t.requires_grad_(i == only)
        leaves = [leaves[only]]
    was = [t.detach().clone() for t in tensors(a)]
    other = mapped(a, lambda t: ((t.flip(-1) if t.dim() else t).detach() * 0.87 + 0.01
                                 ).requires_grad_() if t.requires_grad else t)
    if how == "used":
        sum(y.abs().sum() for y in differentiable(run(*other)) if y.requires_grad).backward()
    kept = [y for y in differentiable(run(*a))]
    if how == "interleaved":
        run(*other)
    ws = [torch.ones_like(y) for y in kept] if ones else weights(kept, 11)
    pairs = [(y, w) for y, w in zip(kept, ws) if y.requires_grad]
    ys, ws = [y for y, _ in pairs], [w for _, w in pairs]
    assert ys, "nothing requires grad"
    if ones:
        ws = [torch.ones((), dtype=w.dtype).expand(w.shape) for w in ws]
    if how in ("gaps", "turned"):
        ws = [gaps(w) if how == "gaps" else turned(w) for w in ws]
    copies = [w.clone() for w in ws]
    values = [y.detach().clone() for y in kept]
    if how == "again":
        autograd_grad(ys, leaves, [w.clone() for w in ws], retain_graph=True, allow_unused=True)
    gs = autograd_grad(ys, leaves, ws, allow_unused=True)
    for t, b in zip(list(tensors(a)) + ws + kept, was + copies + values):
        assert torch.equal(t.detach(), b), "something given was changed"
    for g, t in zip(gs, leaves):
        assert g is None or (g.shape == t.shape and g.dtype == t.dtype), "shape or dtype"
    return [torch.zeros_like(t) if g is None else g for g, t in zip(gs, leaves)], values


def apart(xs, ys):
    far = 0.0
    for x, y in zip(xs, ys, strict=True):
        if x.numel():
            d = ((x - y).abs().max() / (1 + torch.maximum(x.abs().max(), y.abs().max()))).item()
            far = max(far, float("inf") if d != d else d)
    return far


WAYS = ("plain", "gaps", "turned", "interleaved", "used", "again")


def twice_ok(row):
    return "once_differentiable" not in (HERE / "right" / f"{row['name']}.py").read_text()


def as_function(row, cls, args):
    run = Run(row, cls)
    a = fresh(args)
    leaves = [t for t in tensors(a) if t.requires_grad] + run.params

    def fn(*xs):
        it = iter(xs)
        return tuple(y for y in differentiable(run(*mapped(a, lambda t: next(it) if t.requires_grad else t)))
                     if y.requires_grad)
    return fn, leaves


def check_right(row):
    said = []
    for label, make in [("inputs", row["inputs"]), *((f"more{i}", m) for i, m in enumerate(row["more"]))]:
        args = make()
        cls = load("right", row)

        def note(what, fn, bound):
            try:
                d = fn()
                if not d <= bound:
                    said.append(f"{label} {what}: off by {d:.2g}")
            except Exception as e:
                said.append(f"{label} {what}: {type(e).__name__} {str(e)[:200]}")
        truth = central(row, cls, args)
        for way in WAYS:
            note(way, lambda: apart(ours(row, cls, args, way)[0], truth), 3e-6)
        note("ones", lambda: apart(ours(row, cls, args, ones=True)[0], central(row, cls, args, True)), 3e-6)
        for i in range(len(truth)):
            note(f"only {i}", lambda: apart(ours(row, cls, args, only=i)[0], [truth[i]]), 3e-6)
        note("float32", lambda: apart([g.to(t.dtype) for g, t in zip(
            ours(row, cls, args, dtype=torch.float32)[0], truth)], truth), 2e-3)
        if twice_ok(row):
            def second():
                torch.autograd.gradgradcheck(*as_function(row, cls, args), atol=1e-4, rtol=1e-3)
                return 0
            note("second", second, 0)
    return said


def check_wrong(row):
    cls = load("right", row)
    args = row["inputs"]()
    truth, values = central(row, cls, args), ours(row, cls, args)[1]
    cls = load("wrong", row)
    seen = []
    for way in WAYS:
        try:
            gs, ys = ours(row, cls, args, way)
            if apart(ys, values) > 1e-12:
                seen.append("FORWARD")
            if apart(gs, truth) > 1e-3:
                seen.append(way)
        except Exception as e:
            seen.append(f"{way} ({str(e)[:50]})")
    second = False
    if twice_ok(row):
        try:
            with_row = [weights(ours(row, load(side, row), args)[0], 3) for side in ("right", "wrong")]
            two = []
            for side, mix in zip(("right", "wrong"), with_row):
                fn, leaves = as_function(row, load(side, row), args)
                ys = fn(*leaves)
                ws = [w.requires_grad_() for w in weights(ys, 11)]
                gs = autograd_grad(ys, leaves, [w * 1 for w in ws], create_graph=True, allow_unused=True)
                both = [(g, m) for g, m in zip(gs, mix) if g is not None and g.requires_grad]
                dd = autograd_grad([g for g, _ in both], leaves + ws, [m for _, m in both], allow_unused=True)
                two.append([torch.zeros_like(t) if d is None else d for d, t in zip(dd, leaves + ws)])
            second = apart(*two) > 1e-3
        except Exception as e:
            second = f"({str(e)[:50]})"
    return seen, second


def main(names):
    failing = 0
    rows = [r for r in CASES if not names or r["name"] in names]
    for row in rows:
        try:
            said = check_right(row)
            seen, second = check_wrong(row)
            if row["order"] == "first" and not seen:
                said.append("wrong: no first derivative is off")
            if row["order"] == "second" and (seen or not second):
                said.append(f"wrong: order second, but {seen} {second}")
            if "FORWARD" in seen:
                said.append("wrong: another forward")
            if seen and "plain" not in " ".join(seen) and not row.get("hidden"):
                said.append(f"wrong: only seen by {seen}; say hidden")
        except Exception:
            said = [traceback.format_exc()]
            seen = second = None
        failing += bool(said)
        print(f"{row['name']:24} {'FAIL' if said else 'ok'}  {row['order']} second={second}", flush=True)
        for line in said[:8]:
            print("     ", line)
    print(f"{len(rows)} pairs, {failing} failing")
    return failing


if __name__ == "__main__":
    torch.set_num_threads(1)
    sys.exit(bool(main(sys.argv[1:])))
