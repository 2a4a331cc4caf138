"""Containers of Azure and buckets of Google in servers that a process starts for itself.

Azure is answered for by Azurite, its maker's emulator, which `make servers` installs below `build/` where npm is. Google is answered for by `google_store`.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import http.client
import shutil
import sys
from contextlib import closing
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Self

import orjson
import pytest
from obstore.store import AzureStore, GCSStore, ObjectStore
from typing_extensions import override

from tests.support.object_stores import DEADLINE, NUMBERS, TestBucket, started

ACCOUNT = "devstoreaccount1"
ACCOUNT_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""The account that every Azurite has, as its documents tell."""
AZURITE = Path(__file__).parents[2] / "build/azurite/node_modules/azurite/dist/src/blob/main.js"
AZURITE_ENDS = "process.stdin.resume().on('end', () => process.exit(0)); process.argv.splice(1, 0, process.argv[1]); require(process.argv[2])"
VERSION = "2021-12-02"
"""A version of Azure's protocol."""


def _azurite(port: int) -> list[str]:
    node = shutil.which("node")
    assert node is not None
    return [node, "-e", AZURITE_ENDS, str(AZURITE), "--inMemoryPersistence", "--blobHost", "127.0.0.1", "--blobPort", str(port), "--skipApiVersionCheck", "--silent"]


@cache
def _azure() -> int:
    if shutil.which("node") is None or not AZURITE.exists():
        pytest.skip("Azurite is not there: `make servers` installs it where npm is")
    return started("Azure", _azurite)


@cache
def _google() -> int:
    return started("Google", lambda port: [sys.executable, "-m", "tests.support.google_store", str(port)])


def _sent(port: int, path: str, headers: dict[str, str]) -> int:
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=DEADLINE)) as connection:
        connection.request("PUT", path, headers=headers)
        return connection.getresponse().status


class AzureContainer(TestBucket):
    """A container in Azurite."""

    __test__ = False

    @override
    @classmethod
    def new(cls, port: int | None = None) -> Self:
        made = cls(f"container-{next(NUMBERS)}", port or _azure())
        date = datetime.now(UTC).strftime("%a, %d %b %Y %H:%M:%S GMT")
        signed = f"PUT{12 * chr(10)}x-ms-date:{date}\nx-ms-version:{VERSION}\n/{ACCOUNT}/{ACCOUNT}/{made.name}\nrestype:container"
        signature = base64.b64encode(hmac.new(base64.b64decode(ACCOUNT_KEY), signed.encode(), hashlib.sha256).digest()).decode()
        headers = {"x-ms-date": date, "x-ms-version": VERSION, "Authorization": f"SharedKey {ACCOUNT}:{signature}", "Content-Length": "0"}
        assert _sent(_azure(), f"/{ACCOUNT}/{made.name}?restype=container", headers) == 201
        return made

    @property
    @override
    def uri(self) -> str:
        return f"az://{self.name}"

    @property
    @override
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}/{ACCOUNT}"

    @property
    @override
    def toml(self) -> str:
        return f'[connections.lake]\nurl = "{self.uri}"\nendpoint = "{self.endpoint}"\nallow_http = true\naccount_name = "{ACCOUNT}"\naccount_key = "env:LAKE_ACCOUNT_KEY"\n'

    @property
    @override
    def store(self) -> ObjectStore:
        return AzureStore(self.name, account_name=ACCOUNT, account_key=ACCOUNT_KEY, endpoint=f"http://127.0.0.1:{_azure()}/{ACCOUNT}", client_options={"allow_http": True})


class GoogleBucket(TestBucket):
    """A bucket of the stand-in for Google Cloud Storage."""

    __test__ = False

    @override
    @classmethod
    def new(cls, port: int | None = None) -> Self:
        made = cls(f"bucket-{next(NUMBERS)}", port or _google())
        assert _sent(_google(), f"/{made.name}", {"Content-Length": "0"}) == 200
        return made

    @property
    @override
    def uri(self) -> str:
        return f"gs://{self.name}"

    @property
    @override
    def toml(self) -> str:
        return f'[connections.lake]\nurl = "{self.uri}"\nendpoint = "{self.endpoint}"\nallow_http = true\nservice_account = "env:LAKE_SERVICE_ACCOUNT"\n'

    @property
    @override
    def store(self) -> ObjectStore:
        return GCSStore(self.name, config={"base_url": f"http://127.0.0.1:{_google()}", "service_account_key": SERVICE_ACCOUNT}, client_options={"allow_http": True})


SERVICE_ACCOUNT = orjson.dumps({"gcs_base_url": "", "disable_oauth": True, "client_email": "", "private_key": "", "private_key_id": ""}).decode()
"""A service account that asks for no token, as emulators take it."""
KINDS: dict[str, type[TestBucket]] = {"s3": TestBucket, "az": AzureContainer, "gs": GoogleBucket}
"""The kinds of stores by their schemes."""
