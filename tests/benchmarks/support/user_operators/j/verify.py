"""Check that every right operator is right and every wrong one shows its fault."""

import importlib.util
import sys
import warnings
from pathlib import Path

import torch
from torch.autograd import gradcheck, gradgradcheck

HERE = Path(__file__).parent

warnings.filterwarnings("ignore")
FORWARD_AD = {"LinearRollout", "DeEmphasis", "ScaledSimplex", "DeltaRunDecode"}


def _module(name, path):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def load(side, theme):
    return _module(f"{side}_{theme}", HERE / side / f"{theme}.py")


C = _module("cases", HERE / "cases.py")
MORE = _module("more", HERE / "more.py").MORE


def prepare(case, cls, args, make=None):
    """The operator as a function of arguments and parameters, and these."""
    make = make or (getattr(C, case["make"]) if "make" in case else None)
    if make is None:
        return lambda *a: kept(cls.apply(*a)), tuple(args)
    module = make(cls)
    names = [n for n, _ in module.named_parameters()]
    params = tuple(p for _, p in module.named_parameters())

    def call(*flat):
        given = dict(zip(names, flat[len(args) :], strict=True))
        return torch.func.functional_call(module, given, flat[: len(args)])

    return call, tuple(args) + params


def kept(out):
    """The outputs without flags, which gradcheck cannot subtract."""
    if not isinstance(out, tuple):
        return out
    return tuple(o for o in out if o.dtype != torch.bool)


def outputs(out):
    out = out if isinstance(out, tuple) else (out,)
    return [o for o in out if o.requires_grad]


def passes(fn, args, second, forward_ad=False):
    try:
        gradcheck(fn, args, check_forward_ad=forward_ad)
    except Exception as e:
        return f"first: {type(e).__name__} {str(e)[:300]}"
    if second:
        try:
            gradgradcheck(fn, args)
        except Exception as e:
            return f"second: {type(e).__name__} {str(e)[:300]}"
    return ""


def grads(fn, args, layout="plain", seed=5):
    outs = outputs(fn(*args))
    seeds = []
    gen = torch.Generator().manual_seed(seed)
    for o in outs:
        g = torch.randn(o.shape, generator=gen, dtype=torch.float64).to(o.dtype)
        if layout == "transposed" and o.dim() > 1:
            g = g.transpose(0, -1).contiguous().transpose(0, -1)
        elif layout == "strided" and o.dim():
            wide = torch.zeros(*o.shape[:-1], o.shape[-1] * 2, dtype=o.dtype)
            wide[..., ::2] = g
            g = wide[..., ::2]
        elif layout == "expanded":
            g = g.flatten()[:1].reshape(()).expand(o.shape) if o.numel() else g
        elif layout == "expanded_copy":
            g = g.flatten()[:1].reshape(()).expand(o.shape).clone() if o.numel() else g
        seeds.append(g)
    need = [a for a in args if torch.is_tensor(a) and a.requires_grad]
    return torch.autograd.grad(outs, need, seeds, allow_unused=True)


def close(a, b, rtol=1e-9, atol=1e-11):
    if (a is None) != (b is None):
        return False
    return a is None or torch.allclose(a, b, rtol=rtol, atol=atol)


def cast(a):
    if not torch.is_tensor(a) or a.dtype not in (torch.float64, torch.complex128):
        return a
    low = torch.float32 if a.dtype == torch.float64 else torch.complex64
    return a.detach().to(low).requires_grad_(a.requires_grad)


def sound(fn, args, name):
    """Layouts of the gradient, single inputs, float32 and unchanged inputs, for a right one."""
    before = [a.detach().clone() if torch.is_tensor(a) else a for a in args]
    base = grads(fn, args)
    for layout in ("transposed", "strided"):
        if not all(close(a, b) for a, b in zip(base, grads(fn, args, layout), strict=True)):
            return f"layout {layout}"
    pair = grads(fn, args, "expanded"), grads(fn, args, "expanded_copy")
    if not all(close(a, b) for a, b in zip(*pair, strict=True)):
        return "expanded gradient"
    for a, b in zip(args, before, strict=True):
        if torch.is_tensor(a) and not torch.equal(a.detach().nan_to_num(7.0), b.nan_to_num(7.0)):
            return "input changed"
    need = [i for i, a in enumerate(args) if torch.is_tensor(a) and a.requires_grad]
    for k, i in enumerate(need):
        alone = [a.detach().requires_grad_(j == i) if j in need else a for j, a in enumerate(args)]
        if not close(grads(fn, alone)[0], base[k]):
            return f"input {i} alone"
    for drop in range(len(outputs(fn(*args)))):
        outs = outputs(fn(*args))
        torch.autograd.grad(outs[drop].abs().sum(), [args[i] for i in need], allow_unused=True)
    if name == "SincBank":  # float64 buffers
        return ""
    single = grads(fn, [cast(a) for a in args])
    for i, s, b in zip(need, single, base, strict=True):
        if b is None:
            continue
        if s.dtype != cast(args[i]).dtype or s.shape != args[i].shape:
            return f"dtype of input {i}"
        if (s.to(b.dtype) - b).abs().max() > 2e-3 * (1 + b.abs().max()):
            return f"float32 far from float64 in input {i}: {(s - b).abs().max():.2e}"
    return ""


def direct(case, right, wrong):
    """Faults that gradcheck does not see: a reason if the fault shows."""
    kind, name = case["kind"], case["name"]
    fresh = getattr(C, case["inputs"])
    if "layout" in kind:
        fn, args = prepare(case, wrong, fresh())
        plain = grads(fn, args)
        try:
            other = grads(fn, args, "transposed")
        except RuntimeError as e:
            return f"raises: {e}"
        return "" if all(map(close, plain, other)) else "gradient depends on its layout"
    if "mutates" in kind or "in place" in kind:
        args = fresh()
        before = [a.detach().clone() if torch.is_tensor(a) else a for a in args]
        fn, args = prepare(case, wrong, args)
        fn(*args)
        same = [torch.equal(a, b) for a, b in zip(args, before, strict=False) if torch.is_tensor(a)]
        return "" if all(same) else "input changed"
    if "float32" in kind:
        a = grads(*prepare(case, right, fresh()))
        b = grads(*prepare(case, wrong, fresh()))
        return "" if all(map(close, a, b)) else "gradients of single precision"
    raise KeyError(name)


def same_forward(case, right, wrong):
    fresh = getattr(C, case["inputs"])
    fr, ar = prepare(case, right, fresh())
    fw, aw = prepare(case, wrong, fresh())
    a, b = fr(*ar), fw(*aw)
    a = a if isinstance(a, tuple) else (a,)
    b = b if isinstance(b, tuple) else (b,)
    return all(torch.equal(x, y) for x, y in zip(a, b, strict=True))


def main():
    good, seen = 0, set()
    verbose = "-v" in sys.argv
    only = set(sys.argv[1:]) - {"-v"}
    for case in C.CASES:
        name, theme = case["name"], case["group"]
        if only and name not in only:
            continue
        seen.add(name)
        right, wrong = getattr(load("right", theme), name), getattr(load("wrong", theme), name)
        second = case["second_order_right"] is True
        fresh = getattr(C, case["inputs"])
        trouble = []
        samples = [(fresh, None)]
        samples += [s if isinstance(s, tuple) else (s, None) for s in MORE[name]]
        for k, (sample, make) in enumerate(samples):
            fn, args = prepare(case, right, sample(), make)
            why = passes(fn, args, second, name in FORWARD_AD)
            if why:
                trouble.append(f"right, sample {k}: {why}")
                continue
            fn, args = prepare(case, right, sample(), make)
            try:
                why = sound(fn, args, name)
            except Exception as e:
                why = f"{type(e).__name__}: {e}"
            if why:
                trouble.append(f"right, sample {k}: {why}")
        if not same_forward(case, right, wrong):
            trouble.append("forward differs")
        kind = case["kind"]
        if any(word in kind for word in ("layout", "mutates", "in place", "float32")):
            if direct(case, right, right):
                trouble.append("right shows the fault")
            shown = direct(case, right, wrong)
            if not shown:
                trouble.append("wrong does not show its fault")
        else:
            fn, args = prepare(case, wrong, fresh())
            first = passes(fn, args, False)
            shown = first
            if case["shows"] == "second":
                if first:
                    trouble.append(f"wrong fails at first order: {first}")
                shown = passes(fn, args, True)
                if not shown.startswith("second"):
                    trouble.append("wrong does not fail at second order")
            else:
                if not first:
                    trouble.append("wrong passes at first order")
                need = [a for a in args if torch.is_tensor(a) and a.requires_grad]
                if case["shows"] == "both" and second and need:
                    fn, args = prepare(case, wrong, fresh())
                    try:
                        gradgradcheck(fn, args)
                        trouble.append(f"note: {name} wrong passes gradgradcheck, shows=both")
                    except Exception:
                        pass
        if trouble:
            print(f"{name}:")
            for line in trouble:
                print("    " + " ".join(line.split()))
        else:
            good += 1
            if verbose:
                print(name, "ok; wrong shows:", " ".join(shown.split())[:200])
    print(f"{good} of {len(seen)} agree ({len(C.CASES)} cases)")


if __name__ == "__main__":
    main()
