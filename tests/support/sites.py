"""`errata ui` without a server: the application over a folder's pipeline, and a client that has the cookie."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

from starlette.testclient import TestClient

from errata.api.pipeline import stored
from errata.ui.guard import Access
from errata.ui.jobs import Jobs
from errata.ui.reader import Reader
from errata.ui.routes import Site, application
from tests.support.pages import Page
from tests.support.pipelines import Folder

PORT = 8765


@dataclass
class Visit:
    """A client of a folder's pages."""

    folder: Folder
    writes: bool = False

    def __post_init__(self) -> None:
        file = self.folder.path / "pipeline.yaml"
        self.reader = Reader(file, self.folder.load, lambda: stored(file))
        self.access = Access(PORT)
        self.jobs = Jobs(self.reader.work)
        self.site = Site(self.reader, self.access, self.writes, self.folder.engine_options, "pipeline.yaml", self.jobs)
        self.client = TestClient(application(self.site), base_url=f"http://127.0.0.1:{PORT}", cookies={self.access.cookie: self.access.secret}, follow_redirects=False)

    def page(self, path: str, status: int = 200, **query: Any) -> Page:
        """Ask for a page, which is well formed, and read it."""
        answer = self.client.get(path, params=query or None)
        assert answer.status_code == status, answer.text
        page = Page.of(answer.text)
        assert page.open == []
        return page

    def send(self, path: str, *, token: str | None = None, **fields: str) -> Any:
        """Send a form."""
        return self.client.post(path, data={"form_token": self.access.form_token if token is None else token, **fields})

    def job(self, answer: Any) -> Page:
        """Wait for the job that a form began, and read its page."""
        assert answer.status_code == 303, answer.text
        waited = threading.Thread(target=self.jobs.finish, daemon=True)
        waited.start()
        waited.join(120)
        assert not waited.is_alive()
        return self.page(answer.headers["location"])
