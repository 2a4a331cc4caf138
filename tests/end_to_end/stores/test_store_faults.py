"""A store that fails: how often it is asked, how the run ends, what is left, and what no message has."""

from __future__ import annotations

import errno
import io
import os
import random
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable
from contextlib import redirect_stderr

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from errata.core.failures import StorageFailed
from storage import durable
from storage.stores import client
from tests.support.erasing import holding
from tests.support.lakes import ROWS, Lake
from tests.support.object_stores import KEY, SECRET, Request
from tests.support.pipelines import command, jsonl
from tests.support.processes import shown

pytestmark = pytest.mark.servers


def asked(lake: Lake, method: str, part: str) -> int:
    return lake.faults.count(method, part)


@pytest.mark.parametrize(("status", "code"), [(500, "InternalError"), (503, "SlowDown"), (429, "TooManyRequests")])
def test_a_store_that_fails_for_a_while_is_asked_again(lake: Lake, status: int, code: str) -> None:
    for method, part in (("GET", "list-type"), ("GET", "/in/a.csv"), ("PUT", "/out/report.csv")):
        left = [client.TRIES - 1]

        def answer(request: Request, method: str = method, part: str = part, left: list[int] = left) -> tuple[int, str, dict[str, str]] | None:
            if request.method == method and part in request.path and left[0]:
                left[0] -= 1
                return status, code, {"Retry-After": "1"}
            return None

        lake.faults.answer = answer
        lake.folder.write("pipeline.yaml", lake.folder.text("pipeline.yaml").replace("name: far", f"name: far-{len(method + part)}"))
        lake.folder.run(force=True)
        assert left == [0]
    assert lake.report() == ROWS


@pytest.mark.parametrize(("status", "code"), [(500, "InternalError"), (503, "SlowDown")])
def test_a_store_that_goes_on_failing_ends_the_run(lake: Lake, status: int, code: str) -> None:
    lake.faults.answer = lambda request: (status, code, {}) if "/in/a.csv" in request.path else None
    with pytest.raises(StorageFailed, match=rf"source 'orders': {lake.bucket.uri}/in/a.csv: E641: the store says {status} .*\({code}\), 5 tries"):
        lake.run()
    assert asked(lake, "GET", "/in/a.csv") == client.TRIES
    assert lake.bucket.listed() == ["in/a.csv"]
    lake.faults.answer = lambda _: None
    lake.run()
    assert lake.report() == ROWS


@pytest.mark.parametrize(("status", "code", "message"), [(403, "AccessDenied", "the store refuses these credentials"), (401, "Unauthorized", "the store refuses"), (404, "NoSuchBucket", "there is no such bucket")])
def test_a_refusal_is_not_asked_again(lake: Lake, status: int, code: str, message: str) -> None:
    lake.faults.answer = lambda request: (status, code, {}) if "list-type" in request.path else None
    with pytest.raises(StorageFailed, match=f"E641: {message}"):
        lake.run()
    assert len(lake.faults.seen) == 1


@pytest.mark.parametrize(("status", "code"), [(403, "AccessDenied"), (404, "NoSuchKey")])
def test_an_object_that_is_refused_or_gone_is_named_and_not_asked_again(lake: Lake, status: int, code: str) -> None:
    lake.run()
    lake.bucket.put("in/a.csv", "id,amount\n1,11\n")
    lake.faults.answer = lambda request: (status, code, {}) if "/in/a.csv" in request.path else None
    with pytest.raises(StorageFailed, match=f"source 'orders': {lake.bucket.uri}/in/a.csv"):
        lake.run()
    assert lake.faults.count("GET", "/in/a.csv") == 1
    assert (lake.report(), lake.folder.load().head_epoch()) == (ROWS, 1)
    lake.faults.answer = lambda request: (403, "AccessDenied", {}) if request.method == "PUT" else None
    with pytest.raises(StorageFailed, match=f"{lake.bucket.uri}/out/report.csv: E641: the store refuses these credentials"):
        lake.run()
    assert lake.faults.count("PUT") == 1
    assert (lake.report(), lake.folder.load().head_epoch()) == (ROWS, 2)
    lake.faults.answer = lambda _: None
    assert lake.run().committed is False
    assert lake.report() == [{"id": "1", "amount": "11"}]


def test_a_store_without_encryption_has_to_be_allowed(lake: Lake) -> None:
    lake.folder.write("errata.toml", lake.bucket.toml.replace("allow_http = true\n", ""))
    with pytest.raises(StorageFailed, match=r"E641: the endpoint http://127\.0\.0\.1:\d+ of connection 'lake' is without encryption, .* allow_http = true"):
        lake.run()
    assert lake.faults.seen == []


def test_expired_credentials_are_asked_for_again_once(lake: Lake) -> None:
    lake.folder.write("secret", "old")
    lake.folder.write("errata.toml", lake.bucket.toml.replace("env:LAKE_SECRET", "file:secret"))

    def answer(_: Request) -> tuple[int, str, dict[str, str]] | None:
        if lake.folder.text("secret") != "old":
            return None
        lake.folder.write("secret", SECRET)
        return 400, "ExpiredToken", {}

    lake.faults.answer = answer
    lake.run()
    assert lake.report() == ROWS
    lake.faults.answer = lambda _: (400, "ExpiredToken", {})
    with pytest.raises(StorageFailed, match="E641: the credentials have expired"):
        lake.run()
    assert len(lake.faults.seen) == 2


def test_an_answer_that_is_cut_is_asked_for_again(lake: Lake) -> None:
    left = [2]

    def cut(request: Request) -> int | None:
        if "/in/a.csv" in request.path and left[0]:
            left[0] -= 1
            return 5
        return None

    lake.faults.cut = cut
    lake.run()
    assert (left, lake.report()) == ([0], ROWS)
    lake.bucket.put("in/a.csv", "id,amount\n1,11\n")
    lake.faults.cut = lambda request: 3 if "/in/a.csv" in request.path else None
    with pytest.raises(StorageFailed, match="E641: no whole answer"):
        lake.run()
    assert lake.report() == ROWS


def test_a_full_folder_for_temporary_files_ends_the_run(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    lake.run()
    lake.bucket.put("in/b.csv", "id,amount\n3,30\n" + "\n" * client.PART_BYTES)

    write = os.pwrite

    def full(handle: int, part: bytes, start: int) -> int:
        if len(part) < client.PART_BYTES:  # the claim of the run
            return write(handle, part, start)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(os, "pwrite", full)
        with pytest.raises(StorageFailed, match=r"in/b.csv: E321: .* No space left on device"):
            lake.run()
    assert lake.report() == ROWS


def test_a_silent_store_ends_the_run(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    import threading

    monkeypatch.setattr(client, "TIMEOUT", 0.2)
    goes_on = threading.Event()
    lake.faults.before = lambda request: goes_on.wait(20) if "/in/a.csv" in request.path else None
    try:
        with pytest.raises(StorageFailed, match="E641: no answer in time, 5 tries"):
            lake.run()
    finally:
        goes_on.set()


@pytest.mark.deep
def test_an_object_that_is_replaced_while_it_is_read_is_read_anew_once(lake: Lake) -> None:
    large = "id,amount\n" + "".join(f"{number},{number}\n" for number in range(900_000))
    lake.bucket.put("in/a.csv", large)
    new = large.replace(",7\n", ",8\n", 1)
    changes = [1]

    def replaced(request: Request) -> None:
        if request.range.startswith("bytes=8388608") and changes[0]:
            changes[0] -= 1
            lake.bucket.put("in/a.csv", large.replace(",7\n", f",{changes[0] + 8}\n", 1))

    lake.faults.before = replaced
    lake.run()
    assert lake.bucket.get("out/report.csv").decode() == new
    changes[0] = 100
    lake.bucket.put("in/a.csv", large)
    with pytest.raises(StorageFailed, match="E641: it was changed by somebody else"):
        lake.run()
    assert lake.bucket.get("out/report.csv").decode() == new


@pytest.mark.deep
def test_a_parquet_file_that_is_replaced_while_it_is_read_is_no_mixture(lake: Lake) -> None:
    """Its description is behind its columns: one of another version would still find columns where it looks for them."""
    noise = random.Random(1).randbytes(10 << 20).hex()

    def version(amount: int) -> bytes:
        table = pa.table({"id": range(20_000), "amount": [amount] * 20_000, "noise": [noise[at * 1_000 : at * 1_000 + 1_000] for at in range(20_000)]})
        file = io.BytesIO()
        pq.write_table(table, file, compression="zstd", use_dictionary=False)
        return file.getvalue()

    lake.pipeline(f'type: parquet, path: "{lake.bucket.uri}/in/a.parquet", on_unmapped: {{ mode: drop }}')
    lake.bucket.put("in/a.parquet", version(1))
    versions = [version(2)]

    def replaced(request: Request) -> None:
        if request.range.startswith("bytes=8388608") and versions:
            lake.bucket.put("in/a.parquet", versions.pop())

    lake.faults.before = replaced
    lake.run()
    assert (versions, {row["amount"] for row in lake.report()}) == ([], {"2"})
    versions = [version(4), version(3)]
    lake.bucket.put("in/a.parquet", version(5))
    with pytest.raises(StorageFailed, match="E641: it was changed by somebody else"):
        lake.run()
    assert (versions, {row["amount"] for row in lake.report()}, lake.folder.load().head_epoch()) == ([], {"2"}, 1)


def test_a_write_that_fails_after_the_commit_is_made_up_for(lake: Lake) -> None:
    lake.faults.answer = lambda request: (503, "SlowDown", {}) if request.method == "PUT" else None
    with pytest.raises(StorageFailed, match=f"{lake.bucket.uri}/out/report.csv: E641"):
        lake.run()
    assert lake.bucket.listed("out") == []
    lake.faults.answer = lambda _: None
    result = lake.run()
    assert (result.epoch, result.committed, lake.report()) == (1, False, ROWS)


def test_one_object_that_cannot_be_written_keeps_no_other_from_it(lake: Lake) -> None:
    lake.pipeline(output=f', changelog: {{ path: "{lake.bucket.uri}/out/changes.jsonl", format: jsonl }}')
    lake.faults.answer = lambda request: (503, "SlowDown", {}) if request.method == "PUT" and "report" in request.path else None
    code, events, _ = command("run", str(lake.folder.path / "pipeline.yaml"), "--engine", "sail", "--events", "jsonl")
    written = jsonl(events)
    assert (code, written[-1]["committed"], [one for one in written if one["event"] == "output_written"]) == (4, True, [])
    assert lake.bucket.listed("out") == ["out/changes.jsonl"]
    lake.faults.answer = lambda _: None
    assert (lake.run().committed, lake.report()) == (False, ROWS)


@pytest.mark.deep
def test_readers_see_whole_outputs_and_no_upload_stays_open(lake: Lake) -> None:
    large = "id,amount\n" + "".join(f"{number},{number}\n" for number in range(900_000))
    lake.run()
    lake.bucket.put("in/a.csv", large)
    seen: set[bytes] = set()
    lake.faults.before = lambda request: seen.add(lake.bucket.get("out/report.csv")[:40]) if request.method in ("PUT", "POST") else None
    lake.faults.answer = lambda request: (503, "SlowDown", {}) if "partNumber=2" in request.path else None
    with pytest.raises(StorageFailed, match="E641"):
        lake.run()
    assert lake.report() == ROWS
    assert b"<Upload>" not in lake.bucket.uploads()
    lake.faults.answer = lambda _: None
    lake.run()
    assert lake.bucket.get("out/report.csv").decode() == large
    assert seen <= {b"id,amount\n1,10\n2,20\n", large.encode()[:40]}
    assert b"<Upload>" not in lake.bucket.uploads()


@pytest.mark.deep
def test_a_process_that_is_killed_at_a_part_leaves_the_old_output(lake: Lake) -> None:
    large = "id,amount\n" + "".join(f"{number},{10**18 + number}\n" for number in range(1_000_000))
    assert len(large) > 3 * client.PART_BYTES
    lake.run()
    lake.bucket.put("in/a.csv", large)
    words = [sys.executable, "-m", "errata", "run", str(lake.folder.path / "pipeline.yaml"), "--engine", "sail"]
    for part in ("PUT partNumber=1", "PUT partNumber=2", "PUT partNumber=3", "PUT partNumber=4", "POST uploadId"):
        method, query = part.split()
        reached: list[str] = []

        def kill(request: Request, method: str = method, query: str = query, reached: list[str] = reached) -> None:
            if request.method == method and query in request.path and not reached:
                reached.append(request.path)
                process.kill()
                process.wait()

        lake.faults.before = kill
        with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}) as process:
            process.wait()
        assert (process.returncode, len(reached)) == (-signal.SIGKILL, 1), part
        assert (lake.report(), lake.folder.load().head_epoch()) == (ROWS, 2), part
    lake.faults.before = lambda _: None
    assert lake.run().committed is False
    assert lake.bucket.get("out/report.csv").decode() == large


def fault(answer: Callable[[Request], tuple[int, str, dict[str, str]] | None]) -> Callable[[Lake], None]:
    def break_it(lake: Lake) -> None:
        lake.faults.answer = answer

    return break_it


@pytest.mark.parametrize(
    "broken",
    [
        fault(lambda _: None),
        fault(lambda _: (403, f"SignatureDoesNotMatch {KEY}", {})),
        fault(lambda _: (503, "SlowDown", {})),
        fault(lambda request: (500, "Internal", {}) if request.method == "PUT" else None),
        fault(lambda request: (302, "Moved", {"Location": f"http://127.0.0.1:1/x?X-Amz-Signature={SECRET}"}) if "in/" in request.path else None),
    ],
    ids=["none", "refused", "slow", "writes", "moved"],
)
def test_secrets_are_in_no_message_and_no_file(lake: Lake, broken: Callable[[Lake], None], monkeypatch: pytest.MonkeyPatch) -> None:
    broken(lake)
    written = io.StringIO()
    pipeline = str(lake.folder.path / "pipeline.yaml")
    with redirect_stderr(written):
        outputs = [command(*words) for words in (("run", pipeline, "--events", "jsonl"), ("plan", pipeline, "--format", "json"), ("explain", pipeline), ("status", pipeline), ("check", pipeline))]
        try:
            lake.folder.run()
        except StorageFailed as failure:
            traceback.print_exception(failure)
    texts = [written.getvalue(), repr(lake.folder.load().plan.settings), *(text for _, *both in outputs for text in both)]
    for secret in (SECRET, "X-Amz-Signature", "Signature="):
        assert [text for text in texts if secret in text] == []
    assert [text for text in texts if KEY in text] == []
    assert holding(lake.folder.path, (SECRET, KEY)) == []


def test_a_run_with_files_alone_in_a_store_gives_no_process_a_secret_of_a_file(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LAKE_SECRET")
    lake.folder.write("secret", SECRET)
    lake.folder.write("errata.toml", lake.bucket.toml.replace("env:LAKE_SECRET", "file:secret"))
    given: list[bytes] = []
    with durable.probing(lambda _: given.extend([*os.environb.values(), *shown("cmdline")])):
        lake.run()
    assert (lake.report(), len(given) > 0) == (ROWS, True)
    assert not [text for text in given if SECRET.encode() in text]
