"""Only this process can use Sail's server. The attacker is another user where the tests run as root, else the same user."""

import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing

import pytest
from pysail.spark import SparkConnectServer

from storage.engines import EngineChoice, engine, private_port
from storage.engines import sail as sail_engine
from storage.engines.connect import OWN
from storage.engines.private_port import PrivatePort, files_to_come, filters_work
from storage.errors import EngineUnavailable

ATTACK = """
import os, socket, sys
port, patience = int(sys.argv[1]), float(sys.argv[2])
if os.getuid() == 0:
    os.setgroups([]), os.setgid(65534), os.setuid(65534)
one = socket.socket()
one.settimeout(patience)
heard = bytes.fromhex("000000040100000000")  # the server has read our settings
try:
    one.connect(("127.0.0.1", port))
    print("connected", flush=True)
    one.sendall(b"PRI * HTTP/2.0\\r\\n\\r\\nSM\\r\\n\\r\\n" + bytes.fromhex("000000040000000000"))
    received = b""
    while heard not in received:
        part = one.recv(4096)
        if not part:
            sys.exit("hung up")
        received += part
    print("heard")
except TimeoutError:
    print("silence")
"""
pytestmark = pytest.mark.skipif(not filters_work(), reason="this system does not filter what reaches a socket")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[SparkConnectServer]:
    monkeypatch.setenv("RUST_LOG", "off")
    one = SparkConnectServer("127.0.0.1", 0)
    yield one
    one.stop()


def attacker(port: int, patience: float) -> "subprocess.Popen[str]":
    return subprocess.Popen([sys.executable, "-c", ATTACK, str(port), str(patience)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def attack(port: int, patience: float = 0.5) -> list[str]:
    return attacker(port, patience).communicate()[0].split()


def test_an_open_server_hears_everybody(server: SparkConnectServer) -> None:
    """Check that the other tests would notice a port that is not closed."""
    server.start(background=True)
    assert attack(server.listening_address[1], 30) == ["connected", "heard"]


def test_nobody_connects_to_the_engine_of_a_run() -> None:
    one = engine(EngineChoice("sail"))
    port = int(one.session.client._builder.endpoint.rpartition(":")[2])  # type: ignore[attr-defined]  # pyspark does not say
    assert attack(port) == ["silence"]
    assert one.session.range(3).count() == 3


def test_a_connection_during_the_start_is_not_heard_and_closed(server: SparkConnectServer) -> None:
    import grpc

    files = files_to_come()
    server.start(background=True)
    port = PrivatePort(server.listening_address, files)
    early = attacker(server.listening_address[1], 30)
    assert early.stdout
    assert early.stdout.readline() == "connected\n"
    with closing(port), grpc.insecure_channel("{}:{}".format(*server.listening_address), OWN) as channel:
        port.connect(channel)
        grpc.channel_ready_future(channel).result(timeout=30)
        assert attack(server.listening_address[1]) == ["silence"]
    output = early.communicate()[0]
    assert "heard" not in output
    assert early.returncode


def test_an_own_connection_that_is_accepted_during_a_look_is_no_stranger(server: SparkConnectServer, monkeypatch: pytest.MonkeyPatch) -> None:
    server.start(background=True)
    port = PrivatePort(server.listening_address, range(0))
    listed = private_port._files

    def while_looked_at() -> Iterator[int]:
        """The client's end is looked at before it is connected, the server's end after it was accepted."""
        monkeypatch.setattr(private_port, "_files", listed)
        before = {client.fileno(), *listed()}
        yield from before
        client.connect(server.listening_address)
        while not (accepted := [end.file for end in port._accepted()]):
            pass
        yield from accepted

    with closing(port), socket.socket() as client:
        monkeypatch.setattr(private_port, "_files", while_looked_at)
        assert port._admitted()
        client.settimeout(30)
        client.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes.fromhex("000000040000000000"))
        received = b""
        while bytes.fromhex("000000040100000000") not in received:  # our settings were heard
            received += client.recv(4096)


def test_a_connection_that_is_lost_is_made_again(server: SparkConnectServer, monkeypatch: pytest.MonkeyPatch) -> None:
    import grpc

    server.start(background=True)
    before = set(threading.enumerate())
    with closing(PrivatePort(server.listening_address, range(0))) as port, grpc.insecure_channel("{}:{}".format(*server.listening_address), OWN) as channel:
        admitted, seen = PrivatePort._admitted, []
        channel.subscribe(seen.append)

        def lost_once(one: PrivatePort) -> bool:
            if grpc.ChannelConnectivity.READY not in seen:
                return False
            for end in one._accepted():
                private_port._hang_up(end)
            monkeypatch.setattr(PrivatePort, "_admitted", admitted)
            return False

        monkeypatch.setattr(PrivatePort, "_admitted", lost_once)
        port.connect(channel)
        grpc.channel_ready_future(channel).result(timeout=30)
        assert seen.count(grpc.ChannelConnectivity.READY) == 2
        channel.unsubscribe(seen.append)
        for thread in set(threading.enumerate()) - before:
            thread.join()  # the channel's own, which must not outlive it


def test_a_connection_before_the_port_was_closed_ends_the_start(server: SparkConnectServer) -> None:
    server.start(background=True)
    with socket.create_connection(server.listening_address), pytest.raises(EngineUnavailable, match="another process"):
        PrivatePort(server.listening_address, range(0))


@pytest.mark.parametrize(("others", "shared", "starts"), [((), False, True), (("mallory",), False, False), (("mallory",), True, True)])
def test_an_open_port_is_used_only_alone_or_on_a_shared_host(
    monkeypatch: pytest.MonkeyPatch, others: tuple[str, ...], shared: bool, starts: bool
) -> None:
    monkeypatch.setattr("storage.engines.private_port.ATTACH", 9999)  # as on a system without filters
    monkeypatch.setattr(sail_engine, "others_logged_on", lambda: others)
    one = sail_engine.Sail(EngineChoice("sail", shared_host=shared))
    try:
        if starts:
            assert one.session.range(2).count() == 2
        else:
            with pytest.raises(EngineUnavailable, match="others are logged on: mallory"):
                _ = one.session
    finally:
        one.stop()
