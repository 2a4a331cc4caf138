"""Connections that are object stores: which one covers a URI, what the library gets of it, and what nobody else gets."""

from __future__ import annotations

import errno
import os
import pickle
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from errata.core.diagnostics import PipelineErrors
from errata.plan.reached_tables import _reached_by
from errata.project.workspace import read_workspace
from storage.errors import ConnectionFault, StorageError
from storage.files.stores import forget_contents, store_of
from storage.stores.client import PART_BYTES, Bucket, bucket_of
from storage.stores.connections import StoreConnection, Stores, given_environment, of_environment, reach_by_environment, reading_for
from storage.stores.places import ObjectPath, Places
from tests.support.pipelines import Folder, command

STEP = st.text(st.sampled_from("ab-"), min_size=1, max_size=3)
SECRETS = {"K": "AKIAEXAMPLE", "S": "wJalrXUtnFEMI", "T": "session", "A": "bXlrZXk="}


def store(url: str, name: str = "lake", **settings: str) -> StoreConnection:
    return StoreConnection(name, url, tuple(settings.items()), environment=SECRETS)


@given(steps=st.lists(STEP, min_size=1, max_size=4), places=st.lists(st.lists(STEP, min_size=1, max_size=4), max_size=5))
def test_the_longest_prefix_of_whole_steps_covers_a_uri(steps: list[str], places: list[list[str]]) -> None:
    stores = Stores(tuple(store("s3://" + "/".join(one), str(number)) for number, one in enumerate(places)))
    fitting = [one for one in places if steps[: len(one)] == one]
    found = stores.covering("s3://" + "/".join(steps))
    assert (found is None) == (not fitting)
    assert found is None or found.place == "s3://" + "/".join(max(fitting, key=len))


@pytest.mark.parametrize(
    ("place", "uri", "covered"),
    [
        ("s3://bucket", "s3://bucket/in/*.csv", True),
        ("s3://bucket", "s3://bucket*/in.csv", False),
        ("s3://bucket/in", "s3://bucket/in/{source_file}.csv", True),
        ("s3://bucket/in", "s3://bucket/{source_file}.csv", False),
        ("s3://bucket/in", "s3://bucket/input.csv", False),
        ("s3://bucket/", "s3://bucket/in.csv", True),
        ("gs://bucket", "s3://bucket/in.csv", False),
        ("env:URL", "s3://bucket/in.csv", False),
    ],
)
def test_patterns_are_covered_by_their_literal_part(place: str, uri: str, covered: bool) -> None:
    assert store(place).covers(uri) is covered


def test_a_step_up_leads_nowhere() -> None:
    with pytest.raises(Exception, match=r"a '\.\.' step"):
        Places(Path("/"), Stores((store("s3://b/in"),))) / "s3://b/in/../out.csv"


@given(name=st.text(st.sampled_from("a \n\r%é"), min_size=1), tag=st.sampled_from(["", '"0a"', '"0a" v1']))
def test_a_place_as_a_text_is_the_same_place(name: str, tag: str) -> None:
    places = Places(Path("/"), Stores((store("s3://b"),)))
    place = ObjectPath(f"s3://b/in/{name}", store("s3://b"), tag, 7)
    found = places.read(places.text(place))
    assert isinstance(found, ObjectPath)
    assert (found.uri, found.tag, found.size) == (place.uri, tag, 7)


@pytest.mark.parametrize(
    ("url", "settings", "config", "variables"),
    [
        (
            "s3://b", {"endpoint": "https://m", "region": "eu", "access_key_id": "env:K", "secret_access_key": "env:S"},
            {"endpoint": "https://m", "region": "eu", "access_key_id": SECRETS["K"], "secret_access_key": SECRETS["S"]},
            {"AWS_ENDPOINT_URL": "https://m", "AWS_REGION": "eu", "AWS_ACCESS_KEY_ID": SECRETS["K"], "AWS_SECRET_ACCESS_KEY": SECRETS["S"], "AWS_SESSION_TOKEN": None, "AWS_ALLOW_HTTP": None, "AWS_SKIP_SIGNATURE": None},
        ),
        ("s3://b", {"access_key_id": "k", "session_token": "env:T"}, {"access_key_id": "k", "session_token": "session"}, {"AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": None, "AWS_SESSION_TOKEN": "session", "AWS_SKIP_SIGNATURE": None}),
        ("az://c", {"account_name": "n", "account_key": "env:A"}, {"account_name": "n", "account_key": SECRETS["A"]}, {"AZURE_STORAGE_ACCOUNT_NAME": "n", "AZURE_STORAGE_ACCOUNT_KEY": SECRETS["A"], "AZURE_STORAGE_ACCESS_KEY": None, "AZURE_STORAGE_MASTER_KEY": None, "AZURE_STORAGE_TOKEN": None, "AZURE_SKIP_SIGNATURE": None}),
        ("gs://b", {"service_account": "env:A"}, {"service_account_key": SECRETS["A"]}, {"GOOGLE_SERVICE_ACCOUNT_KEY": SECRETS["A"], "GOOGLE_SERVICE_ACCOUNT": None, "GOOGLE_SERVICE_ACCOUNT_PATH": None, "GOOGLE_SKIP_SIGNATURE": None}),
    ],
)  # fmt: skip
def test_what_the_libraries_get(url: str, settings: dict[str, str], config: dict[str, str], variables: dict[str, str | None]) -> None:
    connection = store(url, **settings)
    assert connection.config() == config
    assert connection.variables() == variables
    assert not url.startswith(("s3", "az")) or repr(Bucket(url, connection)._client(fresh=False)).startswith(("S3Store", "AzureStore"))


@pytest.fixture
def outside() -> Iterator[None]:
    """The environment of a process to which nothing but a region was given; all of it comes back."""
    with mock.patch.dict(os.environ):
        for name in [name for name in os.environ if name.startswith("AWS_")]:
            del os.environ[name]
        os.environ["AWS_REGION"] = "outside"
        yield
        reach_by_environment([])


def reached(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The variables by which tables are reached."""
    return {name.removeprefix("AWS_"): value for name, value in environment.items() if name.startswith("AWS_")}


A = StoreConnection(
    "a", "s3://a", (("endpoint", "http://minio.a"), ("region", "ra"), ("access_key_id", "ka"), ("secret_access_key", "env:S"), ("session_token", "env:T")), allow_http=True, environment=SECRETS
)
B = StoreConnection("b", "s3://b", (("access_key_id", "kb"), ("secret_access_key", "env:A")), environment=SECRETS)
REACHED_A = {"ENDPOINT_URL": "http://minio.a", "REGION": "ra", "ACCESS_KEY_ID": "ka", "SECRET_ACCESS_KEY": SECRETS["S"], "SESSION_TOKEN": SECRETS["T"], "ALLOW_HTTP": "true"}
REACHED_B = {"REGION": "outside", "ACCESS_KEY_ID": "kb", "SECRET_ACCESS_KEY": SECRETS["A"]}


@pytest.mark.usefixtures("outside")
def test_a_connection_leaves_nothing_to_the_next_one() -> None:
    for connection, wanted in ((A, REACHED_A), (B, REACHED_B), (replace(A, skip_signature=True), REACHED_A | {"SKIP_SIGNATURE": "true"}), (B, REACHED_B)):
        reach_by_environment([connection])
        assert (reached(), reached(given_environment())) == (wanted, {"REGION": "outside"})
    reach_by_environment([])
    assert reached() == {"REGION": "outside"}
    reach_by_environment([A])
    with pytest.raises(ConnectionFault, match="E602"):
        reach_by_environment([store("s3://b", region="env:MISSING")])
    assert reached() == {"REGION": "outside"}


@pytest.mark.usefixtures("outside")
def test_a_value_that_somebody_else_sets_stays() -> None:
    reach_by_environment([A])
    os.environ["AWS_REGION"] = "theirs"
    reach_by_environment([B])
    assert reached() == REACHED_B | {"REGION": "theirs"}


@pytest.mark.usefixtures("outside")
def test_a_client_of_files_takes_nothing_of_the_connection_of_tables() -> None:
    reach_by_environment([A])
    with reading_for(B):
        assert reached() == {"REGION": "outside", "ACCESS_KEY_ID": "ka", "SECRET_ACCESS_KEY": SECRETS["S"]}
    with reading_for(of_environment("s3://c")):
        assert reached() == {"REGION": "outside"}
    with reading_for(A):
        assert reached() == REACHED_A
    assert reached() == REACHED_A


@pytest.mark.usefixtures("outside")
def test_each_of_two_pipelines_is_reached_by_its_own_connection(tmp_path: Path) -> None:
    os.environ.update(SECRETS)
    settings = {
        "a": 'endpoint = "https://minio.a"\naccess_key_id = "ka"\nsecret_access_key = "env:S"',
        "b": 'access_key_id = "kb"\nsecret_access_key = "env:A"',
        "c": 'access_key_id = "env:AWS_ACCESS_KEY_ID"',
    }
    wanted = {
        "a": {"REGION": "outside", "ENDPOINT_URL": "https://minio.a", "ACCESS_KEY_ID": "ka", "SECRET_ACCESS_KEY": SECRETS["S"]},
        "b": REACHED_B,
        "none": {"REGION": "outside"},
    }
    loaded = {}
    for name, variables in wanted.items():
        folder = Folder(tmp_path / name)
        folder.write("errata.toml", f'[connections.lake]\nurl = "s3://{name}"\n{settings[name]}\n[state]\npath = "s3://{name}/state"\n' if name in settings else "")
        folder.write(
            "pipeline.yaml",
            "pipeline: { name: far }\nnodes:\n"
            "  - { type: source, name: rows, config: { name: rows, type: csv, path: in.csv, schema: [{ name: id, type: int }] } }\n"
            "  - { type: output, name: out, input: rows, config: { name: out, type: csv, path: out.csv } }\n",
        )
        loaded[name] = folder.load()
        assert reached() == variables
    for name in ("a", "b", "none", "a"):
        loaded[name].snapshot()
        assert reached() == wanted[name]
    (tmp_path / "b" / "errata.toml").write_text(f'[connections.lake]\nurl = "s3://b"\n{settings["c"]}\n[state]\npath = "s3://b/state"\n')
    with pytest.raises(PipelineErrors, match="AWS_ACCESS_KEY_ID, which is not set"):
        Folder(tmp_path / "b").load()
    assert reached() == wanted["none"]


def test_tables_of_one_run_have_one_connection() -> None:
    assert len({_reached_by(one) for one in (A, replace(A, name="c", url="s3://c"))}) == 1
    assert len({_reached_by(one) for one in (A, B, replace(A, allow_http=False), replace(A, skip_signature=True))}) == 4


def test_secrets_are_in_no_representation_and_no_pickle() -> None:
    connection = store("s3://b", access_key_id="env:K", secret_access_key="env:S")
    place = ObjectPath("s3://b/x", connection)
    assert set(connection.secrets()) == {SECRETS["K"], SECRETS["S"]}
    for text in (repr(connection), repr(place), repr(bucket_of("s3://b/x", connection)), repr(Stores((connection,)))):
        assert not any(secret in text for secret in SECRETS.values())
    for one in (connection, place, Places(Path("/"), Stores((connection,)))):
        assert not any(secret.encode() in pickle.dumps(one) for secret in SECRETS.values())
        assert pickle.loads(pickle.dumps(one)) == one  # noqa: S301 - our own


def test_a_value_that_is_not_there_is_named() -> None:
    with pytest.raises(ConnectionFault, match="takes 'secret_access_key' from the environment variable MISSING"):
        store("s3://b", secret_access_key="env:MISSING").config()
    with pytest.raises(ConnectionFault, match="E640: no connection covers 's3://c/x'"):
        Stores((store("s3://b"),)).require("s3://c/x")
    with pytest.raises(ConnectionFault, match="E602"):
        Stores((store("env:MISSING"),)).require("s3://c/x")
    with pytest.raises(ConnectionFault, match="E600"):
        _ = store("s3://key:secret@b").place


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ('url = "s3://b"\nsecret_access_key = "plain"', "'secret_access_key' of connection 'lake' must be env:NAME or file:PATH"),
        ('url = "s3://b"\naccount_key = "env:A"', "connection 'lake' has no 'account_key'"),
        ('url = "sqlite:x.db"\nendpoint = "http://x"', "connection 'lake' has no 'endpoint'"),
        ('url = "az://b"\npassword = "env:A"', "connection 'lake' has no 'password'"),
    ],
)
def test_settings_that_do_not_go_together(tmp_path: Path, table: str, message: str) -> None:
    file = tmp_path / "errata.toml"
    file.write_text(f"[connections.lake]\n{table}\n")
    with pytest.raises(PipelineErrors) as wrong:
        read_workspace(file)
    assert message in wrong.value.diagnostics[0].message
    assert wrong.value.diagnostics[0].code == "CFG-004"
    assert "plain" not in str(wrong.value.diagnostics)


@pytest.mark.parametrize(
    ("table", "path", "code"),
    [
        ('url = "s3://b"\nread_only = true', "s3://b/out.csv", "E607"),
        ('url = "s3://b"\nsecret_access_key = "env:ERRATA_NOT_SET"', "s3://b/out.csv", "E602"),
        ('url = "s3://b"', "s3://b/../c/out.csv", "E232"),
        ('url = "s3://b"', "s3://c/out.csv", "E640"),
        ('url = "s3://b"', "s3://b", "E230"),
        ('url = "s3://b"', "s3://b/out/", "E230"),
    ],
)
def test_check_says_what_is_wrong_with_a_place(tmp_path: Path, table: str, path: str, code: str) -> None:
    folder = Folder(tmp_path)
    folder.write("errata.toml", f"[connections.lake]\n{table}\n")
    folder.write("in.csv", "id\n1\n")
    folder.write(
        "pipeline.yaml",
        "pipeline: { name: far }\nnodes:\n"
        "  - { type: source, name: rows, config: { name: rows, type: csv, path: in.csv, schema: [{ name: id, type: int }] } }\n"
        f'  - {{ type: output, name: out, input: rows, config: {{ name: out, type: csv, path: "{path}" }} }}\n',
    )
    exit_code, _, stderr = command("check", str(tmp_path / "pipeline.yaml"))
    assert (exit_code, f"error[{code}]" in stderr) == (1, True), stderr


def test_a_library_that_is_not_there_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("storage.stores.connections.find_spec", lambda _: None)
    with pytest.raises(ConnectionFault) as fault:
        store("s3://b").require_library()
    assert (fault.value.code, fault.value.help) == ("E606", "pip install 'errata[objects]'")
    assert any(row.startswith("extra objects") for row in command("doctor", "--format", "csv")[1].splitlines())


@pytest.mark.parametrize("call", ["truncate", "pwrite"])
def test_a_full_folder_for_temporary_files_names_the_object_and_the_folder(call: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(Bucket, "read", lambda self, key, start, end, tag: bytes(end - start))
    place = ObjectPath("s3://b/in/large.csv", store("s3://b"), '"1"', PART_BYTES + 1)
    with monkeypatch.context() as patched:
        patched.setattr(os, call, full)
        with pytest.raises(StorageError, match=rf"s3://b/in/large.csv: E321: {tmp_path} cannot take its 8,388,609 bytes: No space left on device"):
            store_of(place).content(place)
    assert list(tmp_path.iterdir()) == []
    assert store_of(place).content(place)[:] == bytes(PART_BYTES + 1)
    assert list(tmp_path.iterdir()) == []
    forget_contents()
