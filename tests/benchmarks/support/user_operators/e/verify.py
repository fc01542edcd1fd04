"""Hold the corpus to its word: right ones are right, wrong ones are wrong at the inputs."""

import importlib.util
import os
import sys
import warnings
from collections import Counter

import torch
from torch.autograd import gradcheck, gradgradcheck

import cases

torch.set_num_threads(1)
warnings.filterwarnings("ignore")
HERE = os.path.dirname(os.path.abspath(__file__))


def load(side, group):
    path = os.path.join(HERE, side, group + ".py")
    spec = importlib.util.spec_from_file_location(f"{side}_{group}", path)
    mod = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(mod)
    return mod


def build(side, row):
    """-> function of all tensors, its args"""
    cls = getattr(load(side, row["group"]), row["name"])
    args = getattr(cases, row["inputs"])()
    if not issubclass(cls, torch.nn.Module):

        def apply(*a):
            out = cls.apply(*a)
            if not isinstance(out, tuple):
                return out
            # gradcheck cannot difference flags
            return tuple(o for o in out if o.is_floating_point() or o.is_complex())

        return apply, args
    torch.manual_seed(0)
    mod = row.get("make", lambda c: c())(cls).double()
    names = [n for n, _ in mod.named_parameters()]
    params = tuple(p.detach().clone().requires_grad_() for p in mod.parameters())
    k = len(args)

    def fn(*a):
        return torch.func.functional_call(
            mod, dict(zip(names, a[k:], strict=True)), a[:k]
        )

    return fn, args + params


def check(kind, fn, args):
    """None if it passes, else what was said"""
    try:
        ok = kind(fn, args, fast_mode=False) if kind is gradcheck else kind(fn, args)
        return None if ok else "returned False"
    except Exception as exc:  # noqa: BLE001
        return f"{type(exc).__name__}: {str(exc).strip().splitlines()[0]}"


def leaves(args):
    return [a for a in args if isinstance(a, torch.Tensor) and a.requires_grad]


def outputs(fn, args):
    out = fn(*args)
    out = out if isinstance(out, tuple) else (out,)
    return [o for o in out if o.requires_grad]


def observe(side, row, second=False):
    """values, gradients, gradients again, mutation; an exception's text where it raises"""
    fn, args = build(side, row)
    before = [a.detach().clone() if isinstance(a, torch.Tensor) else a for a in args]
    seen = {}
    try:
        outs = outputs(fn, args)
        gen = torch.Generator().manual_seed(7)
        gos = [
            torch.randn(o.shape, dtype=torch.float64, generator=gen)
            .to(o.dtype)
            .requires_grad_(second)
            for o in outs
        ]
        kept = [g.detach().clone() for g in gos]
        seen["value"] = [o.detach() for o in outs]
        xs = leaves(args)
        gs = torch.autograd.grad(
            outs, xs, gos, create_graph=second, retain_graph=True, allow_unused=True
        )
        seen["none"] = [g is None for g in gs]
        seen["grad"] = [
            torch.zeros_like(x) if g is None else g.detach() for x, g in zip(xs, gs)
        ]
        if second:
            gs = [g for g in gs if g is not None and g.requires_grad]
            if gs:
                loss = sum(
                    (g * torch.randn(g.shape, dtype=torch.float64, generator=gen))
                    .sum()
                    .real
                    for g in gs
                )
                gg = torch.autograd.grad(loss, xs + gos, allow_unused=True)
                seen["second"] = [
                    torch.zeros_like(x) if g is None else g
                    for x, g in zip(xs + gos, gg)
                ]
            else:
                seen["second"] = [torch.zeros_like(x) for x in xs + gos]
        seen["grad_out changed"] = any(
            not torch.equal(a.detach(), b) for a, b in zip(gos, kept)
        )
        seen["input changed"] = any(
            isinstance(a, torch.Tensor) and not torch.equal(a.detach(), b)
            for a, b in zip(args, before)
        )
    except Exception as exc:  # noqa: BLE001
        seen["raises"] = f"{type(exc).__name__}: {str(exc).strip().splitlines()[0]}"
    return seen


def far(a, b):
    for x, y in zip(a, b, strict=True):
        if (
            x.shape != y.shape
            or not torch.isfinite(torch.view_as_real(y) if y.is_complex() else y).all()
        ):
            return True
        if (x - y).abs().max() > 1e-3 * x.abs().max().clamp(min=1e-6):
            return True
    return False


def differs(row, second=False):
    r, w = observe("right", row, second), observe("wrong", row, second)
    if "raises" in r:
        return f"RIGHT RAISES {r['raises']}"
    assert not r["grad_out changed"] and not r["input changed"], row["name"]
    if "raises" in w:
        return "raises " + w["raises"][:60]
    for what in ("grad_out changed", "input changed"):
        if w[what]:
            return what
    if w["none"] != r["none"]:
        return "a needed gradient is None"
    for what in ("value", "grad") + (("second",) if second else ()):
        if far(r[what], w[what]):
            return f"{what} differs"
    return None


bad = []
for row in cases.CASES:
    name, second = row["name"], row["second_order_right"]
    notes = []
    fault = check(gradcheck, *build("right", row))
    if fault:
        bad.append((name, "right fails gradcheck", fault))
    if second is not None:
        fault2 = check(gradgradcheck, *build("right", row))
        if (fault2 is None) != second:
            bad.append((name, f"right gradgradcheck, marked {second}", fault2))
    first = differs(row)
    if row["shows"] == "second":
        if first is not None:
            bad.append((name, "wrong differs at first order already", first))
        got = differs(row, second=True)
        if check(gradgradcheck, *build("wrong", row)) is None:
            bad.append((name, "wrong passes gradgradcheck", ""))
    else:
        got = first
        said = check(gradcheck, *build("wrong", row))
        notes.append("gradcheck of wrong: " + ("passes" if said is None else "fails"))
        twice = (
            second is True and check(gradgradcheck, *build("wrong", row)) is not None
        )
        if row["shows"] != ("both" if twice else "first"):
            bad.append((name, "shows", "both" if twice else "first"))
    if got is None or got.startswith("RIGHT"):
        bad.append((name, "wrong is not seen to be wrong", got))
    print(f"{row['group']:12s} {name:22s} {row['kind']:20s} {got}; {'; '.join(notes)}")

for group in sorted({r["group"] for r in cases.CASES}):
    a = open(os.path.join(HERE, "right", group + ".py")).read().splitlines()
    b = open(os.path.join(HERE, "wrong", group + ".py")).read().splitlines()
    n = sum(x != y for x, y in zip(a, b))
    if (
        len(a) != len(b)
        or n != 10
        or sum(r["group"] == group for r in cases.CASES) != 10
    ):
        bad.append((group, "format", (len(a), len(b), n)))
        continue
    # one differing line in the stretch of each case (its helper class counts to it)
    starts = {r["name"]: None for r in cases.CASES if r["group"] == group}
    owner, owners, helper = None, [], False
    names = []
    for line in a:
        if line.startswith("class "):
            owner = line[6:].split("(")[0].split(":")[0]
        names.append(owner)
    merged = {}
    order = [n for i, n in enumerate(names) if n and (i == 0 or names[i - 1] != n)]
    for i, n in enumerate(order):
        merged[n] = order[i + 1] if n.startswith("_") else n
    hits = Counter(merged[names[i]] for i in range(len(a)) if a[i] != b[i])
    if any(hits[n] != 1 for n in starts):
        bad.append((group, "lines per case", dict(hits)))

kinds = Counter(r["kind"] for r in cases.CASES)
print(dict(kinds.most_common()))
if max(kinds.values()) > 6:
    bad.append(("kinds", "more than 6", kinds.most_common(1)))
for row in bad:
    print("BAD", *row)
print(f"{len(cases.CASES)} cases, {len(bad)} problems")
sys.exit(bool(bad))
