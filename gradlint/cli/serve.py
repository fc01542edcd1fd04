"""``gradlint serve``: findings in editors, by the Language Server Protocol."""

from __future__ import annotations

import os

from gradlint.cli.options import (
    Device,
    Dtype,
    Ignore,
    Imports,
    Inputs,
    Jobs,
    Order,
    Seed,
    Select,
    Timeout,
    Untrusted,
    require,
)
from gradlint.rules.catalogue import rule_names


def serve(
    inputs: Inputs = None,
    device: Device = None,
    dtype: Dtype = None,
    select: Select = None,
    ignore: Ignore = None,
    order: Order = None,
    seed: Seed = None,
    timeout: Timeout = None,
    jobs: Jobs = None,
    untrusted: Untrusted = None,
    imports: Imports = None,
) -> int:
    """Serve an editor or an agent over the standard streams, by the Language Server Protocol.

    Findings come when a file is opened or saved, at their lines; what a rule says is shown over a
    finding, or over its code; verified changes are offered as code actions.
    """
    require("pygls", "serve")
    from gradlint.model.resolve import resolve_settings
    from gradlint.running.interruption import interruptible
    from gradlint.serving import Server

    settings = resolve_settings(
        {
            "inputs": inputs,
            "device": device,
            "dtype": dtype,
            "select": select,
            "ignore": ignore,
            "order": order,
            "seed": seed,
            "timeout": timeout,
            "jobs": jobs,
            "untrusted": untrusted,
            "import": imports,
        },
        rules=rule_names(),
    )
    # The client reads nothing but messages: whatever else is printed goes to the error stream.
    stdin, stdout = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    with interruptible():
        Server(settings).run(stdin, stdout)
    return 0
