"""What untrusted code may see of the caller's environment."""

from __future__ import annotations

import re
from collections.abc import Mapping

#: Variables that a confined worker is given: where programs and libraries are, the language, and
#: what controls torch and its compilers.
_KEPT = re.compile(
    r"PATH|LANG|LANGUAGE|LC_\w+|TZ|USER|LOGNAME|VIRTUAL_ENV|CONDA_PREFIX|LD_LIBRARY_PATH|LD_PRELOAD"
    r"|CC|CXX|CPATH|LIBRARY_PATH|CUDAHOSTCXX|ATEN_\w+"
    r"|(PYTHON|OMP|KMP|GOMP|MKL|OPENBLAS|CUDA|NVIDIA|TORCH|PYTORCH|TRITON)\w*"
)

#: Of these, names that say that they hold what nobody else may know.
_SECRET = re.compile(r"TOKEN|SECRET|PASS|CREDENTIAL|KEY|AUTH", re.IGNORECASE)


def public(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables of ``environment`` that untrusted code may see."""
    return {
        name: value
        for name, value in environment.items()
        if _KEPT.fullmatch(name) and not _SECRET.search(name)
    }
