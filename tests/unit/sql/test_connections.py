"""Connections: addresses, secrets, and what no text shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from storage.errors import ConnectionFault
from storage.secrets import Secret, redacted
from storage.sql.connections import Connection

PASSWORD = "p%:@/#s w"


def made(url: str, **given: object) -> Connection:
    return Connection("shop", Secret(url), folder=Path("/srv"), **given)  # type: ignore[arg-type]


def test_a_password_comes_from_the_environment_and_back_into_the_address() -> None:
    one = made("postgresql://app@db.example:5433/shop?sslmode=verify-full", password="env:PW", environment={"PW": PASSWORD})
    address = one.address()
    assert (address.host, address.port, address.database, address.user) == ("db.example", 5433, "shop", "app")
    assert address.shown == "db.example:5433/shop"
    assert address.url() == "postgresql://app:p%25%3A%40%2F%23s%20w@db.example:5433/shop?sslmode=verify-full"


def test_a_password_comes_from_a_file_without_its_last_line_end(tmp_path: Path) -> None:
    (tmp_path / "pw").write_text(f"{PASSWORD}\n")
    one = made("postgres://app@db/shop", password=f"file:{tmp_path}/pw")
    assert one.address().password == Secret(PASSWORD)


@pytest.mark.parametrize("url", [f"postgresql://app:{PASSWORD.replace('/', '%2F').replace('#', '%23')}@db/shop", "env:URL"])
def test_no_representation_has_the_password(url: str) -> None:
    one = made(url, environment={"URL": "postgresql://app:hunter2@db/shop", "PW": PASSWORD}, password=None)
    shown = f"{one!r} {one} {one.address()!r}"
    assert "hunter2" not in shown
    assert "p%:" not in shown


def test_a_password_among_the_settings_is_a_secret_too() -> None:
    one = made("postgresql://app@db/shop?sslmode=require&password=hunt%40er2")
    assert "hunt" not in f"{one!r} {one.address()!r}"
    assert "hunt" not in str(one.failed("refused", "cannot use hunt@er2, hunt%40er2"))


def test_errors_of_drivers_lose_their_secrets() -> None:
    one = made("postgresql://app:hunter2@db/shop")
    error = one.failed("refused", 'could not connect to "postgresql://app:hunter2@db/shop" with hunter2\nQuery was: SELECT secret')
    assert "hunter2" not in str(error)
    assert "Query was" not in str(error)
    assert str(error).startswith("connection 'shop' (db/shop): ")
    assert redacted("//u:x@h", []) == "//***@h"


@pytest.mark.parametrize(
    ("url", "code"),
    [("mongodb://h/d", "E600"), ("sqlite::memory:", "E600"), ("duckdb:", "E600"), ("postgresql://h:port/d", "E600"), ("env:NOT_THERE", "E602"), ("orders", "E600")],
)
def test_what_is_no_connection(url: str, code: str) -> None:
    with pytest.raises(ConnectionFault) as caught:
        made(url).address()
    assert caught.value.code == code


@pytest.mark.parametrize(("url", "path"), [("sqlite:data/shop.db", "/srv/data/shop.db"), ("duckdb:/abs/x.duckdb", "/abs/x.duckdb"), ("sqlite:///abs/x.db", "/abs/x.db"), ("sqlite:a%20b.db", "/srv/a b.db")])
def test_paths_start_at_the_workspace(url: str, path: str) -> None:
    assert made(url).address().path == Path(path)


@pytest.mark.parametrize(("url", "has"), [("postgresql://a:b@h/d", True), ("postgresql://a@h:5432/d", False), ("postgresql://a@h/d?password=b", True), ("env:X", False), ("sqlite:a:b@c.db", False)])
def test_a_password_in_the_url_is_seen(url: str, has: bool) -> None:
    assert made(url).has_password_in_url is has


@pytest.mark.parametrize("password", ["123/hunt", "12#hunt", "12?hunt", "12?hunt=2", "12/3?hunt"])
def test_a_password_with_the_end_of_a_host_in_it_is_refused_and_not_shown(password: str) -> None:
    with pytest.raises(ConnectionFault) as caught:
        made(f"postgresql://app:{password}@db/shop").address()
    assert caught.value.code == "E600"
    assert "hunt" not in f"{caught.value} {caught.value!r}"


def test_a_setting_may_have_an_at_sign() -> None:
    assert made("postgresql://db:5433/shop?user=app@tenant").address().shown == "db:5433/shop"
