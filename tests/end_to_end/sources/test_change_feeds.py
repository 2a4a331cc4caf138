"""Change feeds end to end: the newest version of each key against a plain model, and what single messages do."""

from __future__ import annotations

import random
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.corrections import Deliveries, FeedOutcome, feed_deliveries, json_lines, of_feed
from tests.support.examples import examples
from tests.support.pipelines import Folder, command

PIPELINE = """\
pipeline: { name: feed }
nodes:
  - type: source
    name: feed
    config:
      name: feed
      type: json
      glob: in/*.jsonl
      options: { format: ndjson, cdc: CDC }
      on_unmapped: { mode: drop }
      merge: { strategy: changelog, primary_key: [id]VERSION }
      schema: [{ name: id, type: int }, { name: v, type: string }]
  - { type: output, name: rows, input: feed, config: { name: rows, type: csv, path: rows.csv } }
error_handling: { strategy: continue, dlq: { path: rejected.csv } }
"""


def feed(folder: Path, cdc: str, version: str = "") -> Folder:
    made = Folder(folder)
    made.write("pipeline.yaml", PIPELINE.replace("CDC", cdc).replace("VERSION", f", version_field: {version}" if version else ""))
    return made


def rows(folder: Folder) -> dict[str, str]:
    return {row["id"]: row["v"] for row in folder.rows("rows.csv")}


def categories(folder: Folder) -> list[str]:
    return sorted(row["_cxl_dlq_error_category"] for row in folder.rows("rejected.csv"))


def change(op: str, key: int, value: str, lsn: int) -> dict[str, Any]:
    row = {"id": key, "v": value}
    return {"before": row if op == "d" else None, "after": None if op == "d" else row, "op": op, "source": {"table": "t", "lsn": lsn}}


def history(count: int, keys: int, dice: random.Random) -> list[dict[str, Any]]:
    """Changes with ascending versions. Truncations come too."""
    made: list[dict[str, Any]] = []
    for lsn in range(count):
        if dice.random() < 0.02:
            made.append({"before": None, "after": None, "op": "t", "source": {"table": "t", "lsn": lsn}})
        else:
            made.append(change("d" if dice.random() < 0.3 else "u", dice.randrange(keys), f"v{lsn}", lsn))
    return made


def model(messages: list[dict[str, Any]]) -> dict[str, str]:
    """The live values after all messages, by version."""
    live: dict[str, str] = {}
    for message in sorted(messages, key=lambda message: message["source"]["lsn"]):
        if message["op"] == "t":
            live.clear()
        elif message["op"] == "d":
            live.pop(str(message["before"]["id"]), None)
        else:
            live[str(message["after"]["id"])] = message["after"]["v"]
    return dict(sorted(live.items(), key=lambda pair: int(pair[0])))


def check_order(folder: Folder, files: int, size: int, runs: int) -> None:
    """Deliver messages in random order, some of them twice, in some runs: the end is that of the versions."""
    dice = random.Random(files)
    messages = history(files * size, files, dice)
    shuffled = dice.sample(messages, len(messages))
    chunks = [shuffled[at : at + size] for at in range(0, len(shuffled), size)]
    names = dice.sample(range(files), files)
    delivered: list[dict[str, Any]] = []
    cuts = sorted(dice.sample(range(1, files), runs - 1))
    for start, end in zip([0, *cuts], [*cuts, files], strict=True):
        for at in range(start, end):
            again = dice.sample(delivered, min(2, len(delivered)))
            folder.write(f"in/{names[at]:05}.jsonl", json_lines([*chunks[at], *again]))
            delivered += chunks[at]
        folder.run()
        assert rows(folder) == model(delivered)
        if dice.random() < 0.5:
            for name in names[start:end]:
                folder.remove(f"in/{name:05}.jsonl")
    assert not command("verify", str(folder.path / "pipeline.yaml"), "--quiet")[0]


def test_versions_decide_whatever_the_order(tmp_path: Path):
    check_order(feed(tmp_path, "debezium", "source.lsn"), files=12, size=6, runs=6)


@pytest.mark.deep
def test_a_thousand_deliveries_out_of_order(tmp_path: Path):
    check_order(feed(tmp_path, "debezium", "source.lsn"), files=1000, size=4, runs=60)


PARTIAL = """\
pipeline: { name: partial }
nodes:
  - type: source
    name: feed
    config:
      name: feed
      type: json
      glob: in/*.jsonl
      files: { on_no_match: skip }
      options: { format: ndjson, cdc: debezium }
      on_unmapped: { mode: drop }
      merge: { strategy: changelog, primary_key: [id]VERSION }
      schema: [{ name: id, type: int }, { name: v, type: string }, { name: w, type: int }]
  - { type: output, name: rows, input: feed, config: { name: rows, type: csv, path: rows.csv } }
error_handling: { strategy: continue, dlq: { path: rejected.csv } }
"""


def outcome(folder: Folder) -> FeedOutcome:
    """The rows and the rejects that a run wrote."""
    wrong = folder.rows("rejected.csv") if (folder.path / "rejected.csv").exists() else []
    rejects = {(Path(row["_cxl_dlq_source_file"]).stem, int(row["_cxl_dlq_source_row"]), row["_cxl_dlq_error_category"]) for row in wrong}
    return FeedOutcome({int(row["id"]): (row["v"], int(row["w"])) for row in folder.rows("rows.csv")}, rejects)


@examples(60, 8)
@given(feed_deliveries(), st.booleans(), st.booleans())
def test_unavailable_values_and_truncations_do_not_depend_on_the_runs(history: list[Deliveries], versioned: bool, leave: bool):
    with tempfile.TemporaryDirectory() as place:
        folder, files = Folder(Path(place)), Deliveries()
        folder.write("pipeline.yaml", PARTIAL.replace("VERSION", ", version_field: source.lsn" if versioned else ""))
        for some in history:
            files |= some
            for name, messages in some.items():
                folder.write(f"in/{name}.jsonl", json_lines(messages))
            folder.run()
            assert outcome(folder) == of_feed(files, versioned=versioned)
            for name in () if leave else some:
                folder.remove(f"in/{name}.jsonl")
        assert not command("verify", str(folder.path / "pipeline.yaml"), "--quiet")[0]
        if leave:
            folder.run(full_refresh=True)
            assert outcome(folder) == of_feed(files, versioned=versioned)


@pytest.mark.parametrize("versioned", [False, True])
def test_an_edited_feed_and_an_overwritten_file_keep_rejects_and_values(tmp_path: Path, versioned: bool):
    folder = Folder(tmp_path)
    text = PARTIAL.replace("VERSION", ", version_field: source.lsn" if versioned else "")
    folder.write("pipeline.yaml", text)
    created = {"op": "c", "before": None, "after": {"id": 1, "v": "a", "w": 5}, "source": {"lsn": 1}}
    kept = {"op": "u", "before": None, "after": {"id": 1, "v": "__debezium_unavailable_value", "w": 6}, "source": {"lsn": 4}}
    cleared = {"op": "t", "before": None, "after": None, "source": {"lsn": 1}}
    folder.write("in/1.jsonl", json_lines([created, {"op": "x", "source": {"lsn": 1}}]))
    folder.run()
    folder.remove("in/1.jsonl")
    folder.write("in/2.jsonl", json_lines([kept]))
    folder.run()
    assert outcome(folder) == FeedOutcome({1: ("a", 6)}, {("1", 2, "unknown_operation")})
    folder.write("pipeline.yaml", text.replace("glob:", "correlation_key: v\n      glob:"))
    folder.run()
    assert outcome(folder) == FeedOutcome({1: ("a", 6)}, {("1", 2, "unknown_operation")})
    folder.write("in/15.jsonl", json_lines([cleared]))
    folder.run()
    rejects = {("1", 2, "unknown_operation"), ("2", 1, "unavailable_value")}
    assert outcome(folder) == FeedOutcome({}, rejects)
    folder.write("in/3.jsonl", json_lines([{"op": "x", "source": {"lsn": 1}}]))
    folder.run()
    assert outcome(folder) == FeedOutcome({}, {*rejects, ("3", 1, "unknown_operation")})
    folder.write("in/3.jsonl", json_lines([{**cleared, "source": {"lsn": 9}}]))
    folder.run()
    assert outcome(folder) == FeedOutcome({}, rejects)


def test_a_reject_stays_one_when_a_later_version_of_its_stream_is_activated(tmp_path: Path):
    folder = feed(tmp_path, "{ format: singer, stream: s }")
    record = {"type": "RECORD", "stream": "s", "version": 1, "record": {"id": 1, "v": "a"}}
    activated = {"type": "ACTIVATE_VERSION", "stream": "s", "version": 2}
    folder.write("in/1.jsonl", json_lines([record, {**record, "record": {"id": "none"}}, activated]))
    folder.run()
    assert rows(folder) == {}
    assert categories(folder) == ["type_coercion_failure"]


def test_an_old_event_stays_away_although_all_files_are_gone(tmp_path: Path):
    folder = feed(tmp_path, "debezium", "source.lsn")
    folder.write("in/1.jsonl", json_lines([change("c", 1, "a", 1), change("c", 2, "b", 2)]))
    folder.run()
    folder.write("in/2.jsonl", json_lines([change("d", 7, "x", 9)]))
    folder.run()
    folder.remove("in/2.jsonl")
    folder.write("in/3.jsonl", json_lines([change("c", 7, "late", 5), change("u", 2, "new", 3)]))
    folder.run()
    assert rows(folder) == {"1": "a", "2": "new"}


def test_an_edited_feed_remembers_deletions_in_files_that_are_gone(tmp_path: Path):
    folder = feed(tmp_path, "debezium", "source.lsn")
    folder.write("in/1.jsonl", json_lines([change("c", 1, "a", 1), change("d", 2, "b", 9)]))
    folder.run()
    folder.remove("in/1.jsonl")
    folder.write("in/2.jsonl", json_lines([change("c", 3, "c", 1)]))
    folder.write("pipeline.yaml", (tmp_path / "pipeline.yaml").read_text().replace("type: string }]", "type: string }]\n      correlation_key: v"))
    folder.run()
    assert rows(folder) == {"1": "a", "3": "c"}
    folder.write("in/3.jsonl", json_lines([change("c", 2, "late", 5)]))
    folder.run()
    assert rows(folder) == {"1": "a", "3": "c"}


def test_a_changed_key_takes_the_old_one_back(tmp_path: Path):
    folder = feed(tmp_path, "debezium")
    folder.write("in/1.jsonl", json_lines([change("c", 1, "a", 1)]))
    folder.run()
    moved = {**change("u", 2, "b", 2), "before": {"id": 1, "v": "a"}}
    folder.write("in/2.jsonl", json_lines([moved]))
    folder.run()
    assert rows(folder) == {"2": "b"}


def test_late_events_of_a_feed_without_versions_take_their_place(tmp_path: Path):
    folder = feed(tmp_path, "debezium")
    truncation = {"before": None, "after": None, "op": "t", "source": {"table": "t"}}
    folder.write("in/2.jsonl", json_lines([truncation, change("c", 2, "b", 0)]))
    folder.run()
    folder.remove("in/2.jsonl")
    folder.write("in/1.jsonl", json_lines([change("c", 1, "a", 0), change("c", 2, "a", 0)]))
    folder.run()
    assert rows(folder) == {"2": "b"}
    folder.write("in/3.jsonl", json_lines([{**change("u", 2, "", 0), "after": {"id": 2, "v": "__debezium_unavailable_value"}}, change("u", 3, "c", 0)]))
    folder.run()
    assert rows(folder) == {"2": "b", "3": "c"}


def test_a_changed_key_without_all_values_changes_nothing(tmp_path: Path):
    folder = feed(tmp_path, "debezium")
    folder.write("in/1.jsonl", json_lines([change("c", 1, "a", 1)]))
    folder.run()
    folder.write("in/2.jsonl", json_lines([{**change("u", 2, "__debezium_unavailable_value", 2), "before": {"id": 1, "v": "a"}}]))
    folder.run()
    assert rows(folder) == {"1": "a"}
    assert categories(folder) == ["unavailable_value"]


def test_canal_has_arrays_of_rows(tmp_path: Path):
    folder = feed(tmp_path, "{ format: canal, table: shop.t }")
    envelope = {"database": "shop", "table": "t", "isDdl": False}
    folder.write("in/1.jsonl", json_lines([{**envelope, "type": "INSERT", "data": [{"id": "1", "v": "a"}, {"id": "2", "v": "b"}, {"id": "3", "v": "c"}], "old": None}]))
    folder.run()
    changes = [
        {**envelope, "type": "UPDATE", "data": [{"id": "1", "v": "A"}, {"id": "20", "v": "b"}], "old": [{"v": "a"}, {"id": "2"}]},
        {**envelope, "type": "DELETE", "data": [{"id": "3", "v": "c"}], "old": None},
        {**envelope, "isDdl": True, "type": "ALTER", "data": None},
        {**envelope, "table": "other", "type": "INSERT", "data": [{"id": "9", "v": "x"}]},
    ]
    folder.write("in/2.jsonl", json_lines(changes))
    folder.run()
    assert rows(folder) == {"1": "A", "20": "b"}


def test_a_batch_of_singer_ends_the_run(tmp_path: Path):
    folder = feed(tmp_path, "{ format: singer, stream: s }")
    folder.write("in/1.jsonl", json_lines([{"type": "BATCH", "stream": "other"}, {"type": "BATCH", "stream": "s", "manifest": []}]))
    code, _, error = command("run", str(tmp_path / "pipeline.yaml"))
    assert code == 4
    assert "a BATCH message names files that are elsewhere" in error


def test_hostile_messages_are_rejects(tmp_path: Path):
    folder = feed(tmp_path, "debezium", "source.lsn")
    lines = ["[1]", "7", "{", '{"key": {"id": 1}, "value": "{"}', '{"key": 1, "value": 2}', '{"op": ["c"]}', '{"op": "c", "after": 3, "source": {"lsn": 1}}', "{}"]
    no_key, no_version = '{"op": "d", "before": {}, "source": {"lsn": 1}}', '{"op": "c", "after": {"id": 1, "v": "x"}, "source": null}'
    folder.write("in/1.jsonl", "".join(f"{line}\n" for line in [*lines, no_key, no_version, "null", '{"schema": {}, "payload": null}']))
    folder.run()
    assert rows(folder) == {}
    malformed, unknown = ["malformed_record"] * 6, ["unknown_operation"] * 2
    assert categories(folder) == sorted([*malformed, *unknown, "null_primary_key", "null_version"])
