"""Who may ask: a browser of this machine that was given the token, by an address of this machine."""

from __future__ import annotations

import hmac
from dataclasses import dataclass, field
from hashlib import sha256
from secrets import token_urlsafe
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, quote, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import HTMLResponse, RedirectResponse

from errata.pages import rendering

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

HOSTS = ("127.0.0.1", "localhost", "[::1]")
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY, "x-content-type-options": "nosniff", "referrer-policy": "same-origin", "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin", "cross-origin-resource-policy": "same-origin", "x-frame-options": "DENY",
}  # fmt: skip
"""The headers of every answer."""


@dataclass(frozen=True, slots=True)
class Access:
    """The port and the secret of a server. `secret` is in the address that is printed, and then in a cookie."""

    port: int
    secret: str = field(default_factory=lambda: token_urlsafe(32), repr=False)

    @property
    def origin(self) -> str:
        """The beginning of every address of a page."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def address(self) -> str:
        """The address that opens the pages."""
        return f"{self.origin}/?token={self.secret}"

    @property
    def cookie(self) -> str:
        """The name of the cookie: other servers on this machine share its cookies."""
        return f"errata_{self.port}"

    @property
    def form_token(self) -> str:
        """The token in a form that shows that a page of this server made it."""
        return hmac.new(self.secret.encode(), b"form", sha256).hexdigest()

    def is_secret(self, given: str | None) -> bool:
        """Whether a text is the secret; takes the same time for each text."""
        return given is not None and hmac.compare_digest(given.encode(), self.secret.encode())

    def is_form_token(self, given: str | None) -> bool:
        """Whether a text is the token of forms."""
        return given is not None and hmac.compare_digest(given.encode(), self.form_token.encode())

    def origins(self) -> set[str]:
        """The origins of pages of this server."""
        return {f"http://{host}:{self.port}" for host in HOSTS}


class Guard:
    """Refuses requests that may not be answered, and adds headers to every answer."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app = app
        self._access = access
        self._hosts = {f"{host}:{access.port}" for host in HOSTS}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or let the application do it."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        await (self._refusal(scope) or self._app)(scope, receive, guarded)

    def _refusal(self, scope: Scope) -> ASGIApp | None:
        headers = Headers(scope=scope)
        if headers.get("host", "").lower() not in self._hosts:
            return refused(421, "This server answers to addresses of this machine only.")
        origin = headers.get("origin")
        if scope["method"] not in ("GET", "HEAD") and origin is not None and origin not in self._access.origins():
            return refused(403, "Another site sent this form.")
        query = dict(parse_qsl(scope["query_string"].decode("latin-1")))
        if self._access.is_secret(query.get("token")):
            return self._let_in(scope["path"], query)
        if not self._access.is_secret(cookie_parser(headers.get("cookie", "")).get(self._access.cookie)):
            return refused(403, "Open the address that errata ui printed. A link that somebody shared opens once that was done:", _here(scope) if scope["method"] == "GET" else "")
        return None

    def _let_in(self, path: str, query: dict[str, str]) -> ASGIApp:
        """Put the secret into a cookie and take it out of the address."""
        rest = urlencode({name: value for name, value in query.items() if name != "token"})
        answer = RedirectResponse(f"/{quote(path.lstrip('/'))}{f'?{rest}' if rest else ''}", 303)
        answer.set_cookie(self._access.cookie, self._access.secret, httponly=True, samesite="strict", path="/")
        return answer


def refused(status: int, message: str, again: str = "") -> HTMLResponse:
    """Return the page for a request that is not answered; `again` is a link to the same address."""
    return HTMLResponse(rendering.render("refused.html", message=message, again=again), status)


def _here(scope: Scope) -> str:
    query = scope["query_string"].decode("latin-1")
    return f"/{quote(scope['path'].lstrip('/'))}{f'?{query}' if query else ''}"
