"""What every Python process of a program that ``gradlint record`` watches executes first.

It imports nothing of gradlint and nothing of torch, and takes well under a millisecond: it waits
until the program imports torch itself, and then executes ``watching.py`` and the files that this
imports, which do the rest. Nothing here raises.
"""

from __future__ import annotations

import builtins
import os
import sys
import types

#: Environment variable that names the folder of the recording, for all processes of the program.
FOLDER = "GRADLINT_RECORDING"
#: File in that folder that says what ``--of`` names, as :func:`_named` reads it.
NAMES = "names.tsv"


class Finder:
    """Calls back when a module has been imported.

    It stands first in ``sys.meta_path``, finds nothing itself, and steps aside for every other
    module.

    Args:
        wanted: module → what to call with it.
        files: path of a module's file → the same.
    """

    def __init__(self, wanted: dict, files: dict) -> None:  # type: ignore[type-arg]
        self.wanted = wanted
        self.files = files
        self.busy = False

    def find_spec(self, name, path=None, target=None):  # type: ignore[no-untyped-def]
        """The module's own spec, with a loader that calls back; None for other modules."""
        if self.busy or (name not in self.wanted and not self.files):
            return None
        self.busy = True
        try:
            found = (
                finder.find_spec(name, path, target)
                for finder in sys.meta_path
                if finder is not self and hasattr(finder, "find_spec")
            )
            spec = next((spec for spec in found if spec is not None), None)
        finally:
            self.busy = False
        origin = getattr(spec, "origin", None)
        told = [self.wanted.pop(name, None)]
        if isinstance(origin, str):
            told.append(self.files.pop(os.path.realpath(origin), None))
        if spec is not None and any(told):
            _call_back(spec.loader, [then for then in told if then is not None])
        return spec


def _call_back(loader, told):  # type: ignore[no-untyped-def]
    """Let all in ``told`` be called after the loader's next module was executed."""
    run = getattr(loader, "exec_module", None)
    if run is None:
        return

    def exec_module(module):  # type: ignore[no-untyped-def]
        del loader.exec_module  # the loader is as it was
        run(module)
        for then in told:
            then(module)

    try:
        loader.exec_module = exec_module
    except AttributeError:
        pass


def start(watching: str) -> None:
    """Begin to watch this process, if it belongs to a recording.

    Args:
        watching: the file that is executed once torch is imported.
    """
    folder = os.environ.get(FOLDER)
    if not folder or not os.path.isdir(folder):
        return
    made: list = []  # type: ignore[type-arg]

    def recorder():  # type: ignore[no-untyped-def]
        if not made:
            made.append(_executed(watching).Recorder(folder))
        return made[0]

    def calling(method, *args):  # type: ignore[no-untyped-def]
        def then(module):  # type: ignore[no-untyped-def]
            try:
                getattr(recorder(), method)(module, *args)
            except Exception:
                pass

        return then

    wanted = {
        "torch.autograd.function": calling("on_function_module"),
        "torch._ops": calling("on_ops_module"),
    }
    modules: dict[str, list[str]] = {}
    paths: dict[str, list[str]] = {}
    for module, path, attribute in _named(folder):
        (modules if module else paths).setdefault(module or path, []).append(attribute)
    if paths:
        wanted["torch.nn.modules.module"] = calling("on_nn_module", paths)
    wanted.update((module, calling("on_named", names)) for module, names in modules.items())
    files = {path: calling("on_named", names) for path, names in paths.items()}
    sys.meta_path.insert(0, Finder(wanted, files))


def _executed(path):  # type: ignore[no-untyped-def]
    """The module that a file makes. The files beside it are what it imports of its own package,
    which the program need not have, and finds in ``sys.modules`` in no case."""
    folder = os.path.dirname(path)
    package = "gradlint.recorded."
    modules: dict = {}  # type: ignore[type-arg]

    def module(name):  # type: ignore[no-untyped-def]
        if name not in modules:
            found = modules[name] = types.ModuleType("_gradlint_" + name)
            vars(found)["__builtins__"] = own
            with open(os.path.join(folder, name + ".py"), "rb") as file:
                code = compile(file.read(), "<gradlint record>", "exec")
            exec(code, vars(found))
        return modules[name]

    def importing(name, *args, **kwargs):  # type: ignore[no-untyped-def]
        if name.startswith(package):
            return module(name[len(package) :])
        return builtins.__import__(name, *args, **kwargs)

    own = {**vars(builtins), "__import__": importing}
    return module(os.path.basename(path)[: -len(".py")])


def _named(folder: str) -> list[list[str]]:
    """What ``--of`` names: rows of a module, or the path of a file, and an attribute."""
    try:
        with open(os.path.join(folder, NAMES), encoding="utf-8") as file:
            rows = [line.rstrip("\n").split("\t") for line in file]
    except OSError:
        return []
    return [row for row in rows if len(row) == 3]
