"""`errata ui` as a process: the address that it prints, the loopback interface, its end."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from errata.pages import rendering
from tests.support.audited import project, with_history
from tests.support.pipelines import command

PATIENCE = 60


@contextmanager
def server(folder: Path, *words: str):
    """The command in a process of its own, and the address that it prints. The process is ended whatever happens."""
    program = [sys.executable, "-m", "errata", "ui", "pipeline.yaml", *words]
    process = subprocess.Popen(program, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    timer = threading.Timer(3 * PATIENCE, process.kill)
    timer.start()
    try:
        assert process.stdout is not None
        yield process, process.stdout.readline().strip()
    finally:
        timer.cancel()
        process.kill()
        process.communicate(timeout=PATIENCE)


def test_the_printed_address_opens_the_pages_until_an_interrupt(tmp_path):
    with_history(tmp_path)
    with server(tmp_path) as (process, address):
        found = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/\?token=[\w-]{40,}", address)
        assert found, (address, process.poll() is not None and process.stderr.read())
        plain = address.partition("?")[0]
        with httpx.Client(timeout=PATIENCE, follow_redirects=True) as browser:
            assert browser.get(plain).status_code == 403
            page = browser.get(address)
            assert (page.status_code, str(page.url)) == (200, plain)
            assert "costs" in page.text
            assert browser.get(f"{plain}runs").status_code == 200
            assert browser.post(f"{plain}actions/retry").status_code == 404
        assert listening_elsewhere(int(found[1])) == []
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == 0
        assert "The server has ended." in process.stderr.read()


def listening_elsewhere(port: int) -> list[str]:
    """The other addresses of this machine that answer on a port."""
    found = []
    for place in {one[4][0] for one in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)} - {"127.0.0.1"}:
        with socket.socket() as probe:
            probe.settimeout(2)
            if probe.connect_ex((place, port)) == 0:
                found.append(place)
    return found


def test_a_port_that_is_taken_is_named(tmp_path):
    project(tmp_path)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        code, _, err = command("ui", str(tmp_path / "pipeline.yaml"), "--port", str(port))
    assert (code, f"port {port} cannot be used" in err, "--port" in err) == (4, True, True)


def test_a_file_with_errors_and_without_a_state_ends_the_command(tmp_path):
    (tmp_path / "pipeline.yaml").write_text("pipeline: {name: a}\nnodes: [{type: nothing, name: a}]\n", encoding="utf-8")
    code, _, err = command("ui", str(tmp_path / "pipeline.yaml"))
    assert code == 1
    assert "nothing" in err


@pytest.mark.parametrize("missing", ["starlette", "uvicorn", "jinja2", "graphlay"])
def test_a_missing_library_names_the_extra(tmp_path, monkeypatch, missing):
    project(tmp_path)
    monkeypatch.setattr(rendering, "find_spec", lambda name: None if name == missing else name)
    code, _, err = command("ui", str(tmp_path / "pipeline.yaml"))
    assert code == 1
    assert f"errata ui needs the library {missing}, which is not installed" in err
    assert "pip install 'errata[ui]'" in err


def test_doctor_lists_the_extra(tmp_path):
    _, out, _ = command("doctor", "--format", "csv")
    assert "extra ui" in out


EPOCHS = 1_200
"""Epochs of a pipeline with nine nodes: more than 10,000 pairs of both."""


def test_the_pages_of_many_epochs_come_within_a_second(tmp_path):
    from tests.support.long_history import many_epochs
    from tests.support.sites import Visit

    folder = many_epochs(tmp_path, EPOCHS)
    visit = Visit(folder)
    began = time.process_time()
    visit.site.warm_up()  # what the command does before it prints the address
    assert time.process_time() - began < EPOCHS / 500
    seconds = {}
    for address in ("/", "/calendar", "/calendar?part=7", "/runs", "/runs?part=9", "/node?name=lines", "/output?name=costs", "/restless"):
        began = time.process_time()
        page = visit.page(address)
        seconds[address] = time.process_time() - began
        assert len(page.tags) < 6_000, address
    assert {address: round(took, 2) for address, took in seconds.items() if took > 1} == {}
    assert f"last epoch {EPOCHS}" in visit.page("/").text
