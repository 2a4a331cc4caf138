"""Who may ask `errata ui`: the token, the cookie, the host, other sites."""

from __future__ import annotations

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from errata.ui.guard import HEADERS, Access, Guard

ACCESS = Access(8765, "secret" * 8)
ADDRESS = "http://127.0.0.1:8765"


def client(base=ADDRESS, **cookies):
    routes = [Route("/page", lambda _request: PlainTextResponse("shown"), methods=["GET", "POST"])]
    app = Starlette(routes=routes, middleware=[Middleware(Guard, access=ACCESS)])
    return TestClient(app, base_url=base, cookies=cookies, follow_redirects=False)


def inside():
    return client(**{ACCESS.cookie: ACCESS.secret})


def test_the_token_becomes_a_cookie_and_leaves_the_address():
    answer = client().get("/page", params={"token": ACCESS.secret, "part": "2"})
    assert (answer.status_code, answer.headers["location"]) == (303, "/page?part=2")
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith(f"errata_8765={ACCESS.secret};")
    assert {"httponly", "samesite=strict", "path=/"} <= {part.strip().lower() for part in cookie.split(";")}


@pytest.mark.parametrize("path", ["/page", "/page?token=wrong", "/page?token=", "/nothing", "/static/pages.css"])
def test_without_the_token_nothing_is_shown(path):
    answer = client().get(path)
    assert answer.status_code == 403
    assert "shown" not in answer.text


def test_a_shared_link_opens_from_the_page_that_refuses_it():
    answer = client().get("/page?node=a&key=%22%3E%3Cscript%3E")
    assert '<a href="/page?node=a&amp;key=%22%3E%3Cscript%3E">open it</a>' in answer.text


@pytest.mark.parametrize("cookie", ["", "wrong", "é", ACCESS.secret[:-1], ACCESS.secret + "x"])
def test_another_cookie_does_not_open(cookie):
    answer = client().get("/page", headers={"cookie": f"{ACCESS.cookie}={cookie}".encode()})
    assert answer.status_code == 403


@pytest.mark.parametrize("host", ["127.0.0.1:8765", "localhost:8765", "[::1]:8765", "LOCALHOST:8765"])
def test_addresses_of_this_machine_are_answered(host):
    assert inside().get("/page", headers={"host": host}).text == "shown"


@pytest.mark.parametrize("host", ["evil.example:8765", "127.0.0.1", "127.0.0.1:80", "localhost.evil.example:8765", "", "127.0.0.1:8765.evil.example"])
def test_other_names_are_refused(host):
    assert inside().get("/page", headers={"host": host}).status_code == 421


def test_forms_of_other_sites_are_refused():
    assert inside().post("/page", headers={"origin": "http://evil.example"}).status_code == 403
    assert inside().post("/page", headers={"origin": "null"}).status_code == 403
    assert inside().post("/page", headers={"origin": "http://127.0.0.1:8766"}).status_code == 403
    assert inside().post("/page", headers={"origin": ADDRESS}).text == "shown"


def test_every_answer_guards_the_browser():
    for answer in (inside().get("/page"), inside().get("/nothing"), client().get("/page"), client("http://evil.example").get("/page")):
        assert {name: answer.headers.get(name) for name in HEADERS} == HEADERS
    policy = HEADERS["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy


def test_each_start_has_a_secret_of_its_own():
    assert Access(1).secret != Access(1).secret
    assert len(Access(1).secret) >= 40
    assert Access(1).secret not in repr(Access(1))
    assert ACCESS.form_token != ACCESS.secret
