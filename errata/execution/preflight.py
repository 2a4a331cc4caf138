"""What a run warns of before it reads: a spill volume or a spill cap that its estimate may not fit (user guide, "Free-space preflight")."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

from errata.execution.storage_summary import WARNED_SHARE, Estimates, spill_folder
from errata.plan.plan import Plan


def preflight(plan: Plan) -> Iterator[str]:
    """Warnings W330 and W331; nothing where the workspace says nothing of spilling."""
    if plan.workspace is None:
        return
    folder, cap = spill_folder(plan), plan.workspace.settings.storage.spill.disk_cap_bytes
    estimated = Estimates(plan).known if folder or cap else 0
    free = shutil.disk_usage(folder).free if folder else estimated
    if estimated > free:
        yield (
            f"W330: spill volume {folder} has {free} bytes free but the run is estimated to spill up to {estimated} bytes; the run may fail on a full "
            "volume: point storage.spill.dir at a larger one or partition the input"
        )
    if cap and estimated >= WARNED_SHARE * cap:
        yield (
            f"W331: this run is estimated to spill up to {estimated} bytes, which is {100 * estimated / cap:.0f}% of the configured spill cap "
            f"storage.spill.disk_cap_bytes ({cap} bytes), to which Sail keeps (E320) and Spark does not. This headroom is per invocation: invocations that share the "
            "spill volume share the cap"
        )
