"""Proves by central differences that each right twin is right and each wrong one wrong.

usage: verify.py [NAME ...]

A wrong twin is proved at the case's ``inputs``, in one plain backward; where ``marked`` names
another way of use, it is proved in that one.  Leaves named in ``surrogate`` (straight-through
estimators) have no central difference: there the twins are compared with each other.
"""
import importlib.util
import sys
import traceback
from pathlib import Path

import torch

sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent
from written import CASES  # the file beside this one, which is run as a program

STEP, NEAR, FAR = 1e-6, 3e-6, 1e-3
MODES = ("plain", "strided", "ones", "interleaved", "again", "used before")


def load(side, case):
    path = HERE / side / (case["name"] + ".py")
    spec = importlib.util.spec_from_file_location(f"{side}_{case['name']}", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return getattr(module, case["object"])


def tensors(x):
    if isinstance(x, torch.Tensor):
        return [x]
    return [t for y in x for t in tensors(y)] if isinstance(x, (list, tuple)) else []


def mapped(x, fn):
    if isinstance(x, torch.Tensor):
        return fn(x)
    return type(x)(mapped(y, fn) for y in x) if isinstance(x, (list, tuple)) else x


def numbers(y):
    return [t for t in tensors(y) if t.is_floating_point() or t.is_complex()]


class Use:
    """One operator, callable, with its parameters and the buffers it started with."""

    def __init__(self, obj, case, dtype=None):
        self.module = case["make"](obj) if case["kind"] == "module" else None
        if self.module is not None and dtype is not None:
            self.module.to(dtype)
        self.call = self.module if self.module is not None else obj.apply
        self.params = [] if self.module is None else [p for p in self.module.parameters() if p.requires_grad]
        self.start = {} if self.module is None else {k: b.clone() for k, b in self.module.named_buffers()}

    def __call__(self, *args):
        if self.module is not None:
            with torch.no_grad():
                for k, b in self.module.named_buffers():
                    if not torch.equal(b, self.start[k]):
                        b.copy_(self.start[k])
        return self.call(*args)


def weights(ys, ones=False):
    gen = torch.Generator().manual_seed(9)
    return [torch.ones_like(y) if ones else torch.randn(y.shape, generator=gen, dtype=torch.complex128 if y.is_complex() else torch.float64).to(y.dtype) for y in ys]


def copy(args):
    return mapped(args, lambda t: t.detach().clone().requires_grad_(t.requires_grad))


def measure(obj, case, args, ones=False):
    """The gradients by central differences."""
    use = Use(obj, case)
    grads = [y.requires_grad for y in numbers(use(*copy(args)))]
    base = mapped(args, lambda t: t.detach().clone())
    leaves = [b for b, t in zip(tensors(base), tensors(args)) if t.requires_grad] + [p.data for p in use.params]

    def value():
        ys = numbers(use(*mapped(base, torch.clone)))
        return sum((c.conj() * y).real.sum().item() for y, c, g in zip(ys, weights(ys, ones), grads) if g)

    out = []
    with torch.no_grad():
        for leaf in leaves:
            grad = torch.zeros_like(leaf)
            line, flat = grad.view(-1), leaf.view(-1)
            for i in range(flat.numel()):
                for unit in (1.0, 1j) if leaf.is_complex() else (1.0,):
                    was = flat[i].clone()
                    flat[i] = was + STEP * unit
                    up = value()
                    flat[i] = was - STEP * unit
                    down = value()
                    flat[i] = was
                    line[i] += unit * (up - down) / (2 * STEP)
            out.append(grad)
    return out


def spread(t):
    """the same values in a layout that is not contiguous"""
    if t.numel() == 0 or t.dim() == 0:
        return t
    if t.dim() == 1:
        return torch.stack([t, t * 0 - 7], 1)[:, 0]
    return t.transpose(0, -1).contiguous().transpose(0, -1)


def backward(obj, case, args, mode="plain", only=None, dtype=None):
    """The operator's own gradients in one way of use, and its outputs."""
    use = Use(obj, case, dtype)
    small = {torch.float64: torch.float32, torch.complex128: torch.complex64} if dtype else {}

    def ready(t):
        v = t.detach().clone()
        v = v.to(small.get(v.dtype, v.dtype))
        return (spread(v) if mode == "strided" else v).requires_grad_(t.requires_grad)

    def shifted(t):
        if not t.requires_grad:
            return t
        v = t.detach() * 0.9 + 0.01
        return (v.flip(-1) if v.dim() else v).requires_grad_()

    args = mapped(args, ready)
    leaves = [t for t in tensors(args) if t.requires_grad]
    if only is not None:
        for t in leaves[:only] + leaves[only + 1:] + use.params:
            t.requires_grad_(False)
        leaves = [leaves[only]]
    else:
        leaves = leaves + use.params
    kept = [t.detach().clone() for t in tensors(args)]
    if mode == "used before":
        sum(y.abs().sum() for y in numbers(use(*mapped(args, shifted))) if y.requires_grad).backward()
    ys = numbers(use(*args))
    if mode == "interleaved":
        use(*mapped(args, shifted))
    cs = weights(ys, mode == "ones")
    if mode == "ones":
        cs = [torch.ones((), dtype=c.dtype).expand(c.shape) for c in cs]
    if mode == "strided":
        cs = [spread(c) for c in cs]
    pairs = [(y, c) for y, c in zip(ys, cs) if y.requires_grad]
    if not pairs:
        raise AssertionError("no output wants a gradient")
    before = [c.clone() for _, c in pairs]
    for _ in range(2 if mode == "again" else 1):
        got = torch.autograd.grad([y for y, _ in pairs], leaves, [c for _, c in pairs], allow_unused=True, retain_graph=True)
    for t, k in list(zip(tensors(args), kept)) + [(c, b) for (_, c), b in zip(pairs, before)]:
        if not torch.equal(t.detach(), k):
            raise AssertionError("an input or the incoming gradient was changed")
    for g, t in zip(got, leaves):
        if g is not None and (g.shape != t.shape or g.dtype != t.dtype):
            raise AssertionError("shape or dtype of a gradient")
    return [torch.zeros_like(t) if g is None else g.detach() for g, t in zip(got, leaves)], [y.detach() for y in ys]


def apart(xs, ys):
    worst = 0.0
    for x, y in zip(xs, ys):
        if x.numel():
            d = ((x - y).abs() / (1 + torch.maximum(x.abs(), y.abs()))).max().item()
            worst = float("inf") if d != d else max(worst, d)
    return worst


def second(obj, case, args):
    """'' where the second derivative agrees with the differences of the first one."""
    use = Use(obj, case)
    args = copy(args)
    leaves = [t for t in tensors(args) if t.requires_grad] + use.params

    def run(*xs):
        it = iter(xs)
        return tuple(y for y in numbers(use(*mapped(args, lambda t: next(it) if t.requires_grad else t))) if y.requires_grad)

    try:
        torch.autograd.gradgradcheck(run, leaves, atol=1e-4, rtol=1e-3)
    except Exception as e:
        return f"{type(e).__name__} {str(e)[:200]}"
    return ""


def differences(obj, case, args, ones):
    got = measure(obj, case, args, ones)
    for i in case["surrogate"]:
        got[i] = backward(obj, case, args, "ones" if ones else "plain")[0][i]
    return got


def check(case):
    right, bad, seen = load("right", case), [], []
    once = "once_differentiable" in (HERE / "right" / (case["name"] + ".py")).read_text()
    cases = [case["inputs"], *case["more"]]
    for n, make in enumerate(cases):
        want = {ones: differences(right, case, make(), ones) for ones in (False, True)}
        tries = [(m, dict(mode=m), want[m == "ones"], NEAR) for m in MODES]
        tries += [(f"only {i}", dict(only=i), [want[False][i]], NEAR) for i in range(sum(t.requires_grad for t in tensors(make())))]
        tries += [("float32", dict(dtype=torch.float32), want[False], 2e-3)] if case["float32"] else []
        for label, kw, ref, tol in tries:
            try:
                got, ys = backward(right, case, make(), **kw)
                gap = apart([g.to(r.dtype) for g, r in zip(got, ref)], ref)
                if not gap < tol:
                    bad.append(f"right {n}/{label}: {gap:.2g}")
                if n == 0 and label == "plain":
                    first, values = ref, ys
            except Exception as e:
                bad.append(f"right {n}/{label}: {type(e).__name__} {e}")
        if not once:
            said = second(right, case, make())
            if said:
                bad.append(f"right {n}/second order: {said}")
        if n == 0:
            first, ones = want[False], want[True]
            values = backward(right, case, make())[1]
    wrong = load("wrong", case)  # after the right one: a library's operator is replaced by its namesake
    make = cases[0]
    for mode in MODES:
        try:
            got, ys = backward(wrong, case, make(), mode)
            if apart(ys, values) > 1e-12:
                bad.append(f"wrong/{mode}: the forward differs")
            if apart(got, ones if mode == "ones" else first) > FAR:
                seen.append(mode)
        except Exception as e:
            seen.append(f"{mode} ({type(e).__name__} {str(e)[:50]})")
    twice = "" if once else second(wrong, case, make())
    if case["order"] == "second":
        if seen or not twice:
            bad.append(f"wrong: seen {seen}, second order {twice!r}")
    else:
        proof = case["marked"] or "plain"
        if not any(s.startswith(proof) for s in seen):
            bad.append(f"wrong: not seen in {proof!r} but in {seen}")
        if case["marked"] and any(s.startswith("plain") for s in seen):
            bad.append("wrong: marked, yet seen in plain use")
    return bad


def main():
    torch.set_num_threads(1)
    names, failing, count = sys.argv[1:], 0, 0
    for case in CASES:
        if names and case["name"] not in names:
            continue
        count += 1
        try:
            bad = check(case)
        except Exception:
            bad = [traceback.format_exc()]
        failing += bool(bad)
        print(f"{case['name']:<24}", "FAIL" if bad else "ok", flush=True)
        for line in bad[:6]:
            print("     ", line)
    print(f"{count} pairs, {failing} failing")
    sys.exit(bool(failing))


if __name__ == "__main__":
    main()
