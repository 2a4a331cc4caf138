"""Errata in Dagster: the outputs of a pipeline as assets, which one process makes together.

`errata_assets("pipeline.yaml")` has an asset for each output, in a group with the pipeline's name. Its key is the path of the file or table, so that a
pipeline that reads it depends on it. The page is `docs/how-to/orchestrators.md`.
"""

import json
import re
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from dagster import (
    AssetCheckResult,
    AssetCheckSeverity,
    AssetCheckSpec,
    AssetExecutionContext,
    AssetKey,
    AssetsDefinition,
    AssetSpec,
    DataVersion,
    Failure,
    MaterializeResult,
    RetryRequested,
    multi_asset,
)

Event = dict[str, Any]
GRACE = 30
"""Seconds that an interrupted run has to end by itself."""
RETRIES, PAUSE = 3, 60
"""How often a run that can succeed later is tried again, and after how many seconds."""


def events(command: Sequence[str], words: Sequence[str]) -> Iterator[Event]:
    """Yield the events of a run. Where the caller stops, the run is interrupted, and killed if it does not end."""
    with subprocess.Popen([*command, "run", *words, "--events", "jsonl"], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield from map(json.loads, process.stdout)
            process.wait()
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
                try:
                    process.wait(GRACE)
                except subprocess.TimeoutExpired:
                    process.kill()


def key_of(pipeline: Path, path: str) -> AssetKey:
    """Return the asset of a file or a table: its path below the working folder, or its URI."""
    if "://" not in path:
        full = (pipeline.parent / path).resolve()
        path = str(full.relative_to(Path.cwd()) if full.is_relative_to(Path.cwd()) else full)
    return AssetKey([re.sub(r"[^\w.-]", "_", part) for part in path.split("/") if part])


def _nodes(document: Mapping[str, Any], kind: str) -> dict[str, str]:
    """The names of the nodes of a type, each with its path or table."""
    found = ((node["name"], node.get("config") or {}) for node in document.get("nodes", ()) if node.get("type") == kind)
    return {name: str(place) for name, config in found if (place := config.get("path") or config.get("table"))}


def errata_assets(pipeline: str | Path, *words: str, command: Sequence[str] = ("errata",)) -> AssetsDefinition:
    """Return the assets of a pipeline, with its audit as an asset check.

    Args:
        pipeline: The pipeline's file.
        words: Further words of `errata run`.
        command: The command line of Errata.
    """
    file = Path(pipeline).resolve()
    document = yaml.safe_load(file.read_text(encoding="utf-8"))
    name = re.sub(r"\W", "_", document["pipeline"]["name"])
    keys = {node: key_of(file, path) for node, path in _nodes(document, "output").items()}
    sources = [key_of(file, path) for path in _nodes(document, "source").values()]
    specs = [AssetSpec(key, deps=sources, group_name=name, skippable=True) for key in keys.values()]
    checks = [AssetCheckSpec(check, asset=key) for key in [*keys.values()][:1] for check in ("verify", "no_rejects")]

    @multi_asset(name=f"errata_{name}", specs=specs, check_specs=checks)
    def made(context: AssetExecutionContext) -> Iterator[MaterializeResult[Any] | AssetCheckResult]:
        finished: Event = {"exit_code": None, "retry": "later", "message": "the run was killed"}
        ops: dict[str, Any] = {}
        written: dict[str, list[Event]] = {}
        for event in events(command, [str(file), *words]):
            context.log.info(json.dumps(event))
            if event["event"] == "committed":
                ops = event["ops"]
            elif event["event"] == "output_written" and event["node"] in keys:
                written.setdefault(event["node"], []).append(event)
            elif event["event"] == "run_finished":
                finished = event
        if finished["retry"] == "later":
            raise RetryRequested(RETRIES, PAUSE) from Failure(finished["message"])
        if finished["retry"] != "none":
            raise Failure(f"exit code {finished['exit_code']}: {finished['message']}", allow_retries=False)
        for node, files in written.items():
            metadata = {"rows": files[0]["rows"], "epoch": files[0]["epoch"], "targets": [one["target"] for one in files], "ops": ops.get(node, {})}
            yield MaterializeResult(asset_key=keys[node], metadata=metadata, data_version=DataVersion(str(files[0]["epoch"])))
        for key in [*keys.values()][:1]:
            count, audit = finished["rejected"], subprocess.run([*command, "verify", str(file)], capture_output=True, text=True, check=False)
            yield AssetCheckResult(check_name="verify", asset_key=key, passed=audit.returncode == 0, metadata={"exit_code": audit.returncode})
            yield AssetCheckResult(check_name="no_rejects", asset_key=key, passed=count == 0, severity=AssetCheckSeverity.WARN, metadata={"rejected": count})

    return made
