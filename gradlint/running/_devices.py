"""Which of the devices that were asked for are here."""

from __future__ import annotations

from dataclasses import replace

from gradlint.base.errors import GradlintError
from gradlint.model.report import Report
from gradlint.model.settings import Settings
from gradlint.running.call import call_in_worker

#: Seconds in which a worker must have said what devices there are.
_DEVICES_TIMEOUT = 120.0


def on_present_devices(settings: Settings, report: Report) -> Settings:
    """``settings`` with the devices that work here; the report says which do not.

    Raises:
        GradlintError: one is absent that must be there.
    """
    if all(device == "cpu" for device in settings.devices):
        return settings
    present = call_in_worker("gradlint.running.jobs:devices", timeout=_DEVICES_TIMEOUT)
    absent = [device for device in settings.devices if not present.get(device, False)]
    if absent and settings.require_device:
        raise GradlintError(
            f"{absent[0]} is not available here",
            place="--require-device",
            hint="run where it is, or leave --require-device out to skip its checks",
        )
    if "cuda" in absent and settings.sanitizer is not None:
        report.skipped["sanitizer"] = f"{settings.sanitizer}: watches cuda, not available here"
    for device in absent:
        report.skipped[device] = f"checks on {device}: not available here"
    left = tuple(device for device in settings.devices if device not in absent)
    return replace(settings, devices=left)
