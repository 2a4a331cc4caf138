"""The addresses of `errata ui`. Each reads its words, asks for a view and fills a template."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.responses import FileResponse, HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from errata.core.diagnostics import PipelineErrors
from errata.core.env_references import redacted
from errata.core.failures import Failure, Usage
from errata.core.options import Correction, EngineOptions, LetterChoice, LetterDecision, RunOptions
from errata.inspect.why import live_matches
from errata.pages import rendering
from errata.pages.calendar import calendar
from errata.pages.corrections import corrections, outputs
from errata.pages.dead_letters import dead_letters
from errata.pages.expectations import expectations_page
from errata.pages.links import Links
from errata.pages.overview import overview
from errata.pages.rows import changes_page, node_page, restless_page, story
from errata.pages.runs import NextRun, next_run, runs
from errata.pages.values import paragraphs, short
from errata.rendering.diagnostics import as_text
from errata.ui.forms import below, form_of
from errata.ui.guard import Access, Guard
from errata.ui.jobs import Job, Jobs, Row
from errata.ui.reader import Current, Reader
from storage.errors import EngineUnavailable

if TYPE_CHECKING:
    from starlette.requests import Request

    from errata.core.events import RunResult

MENU = (
    ("", "Overview"), ("output", "Corrections"), ("calendar", "Epochs"), ("runs", "Runs"), ("letters", "Rejected"), ("expectations", "Expectations"), ("restless", "Restless rows"), ("next", "Next run"),
)  # fmt: skip
"""The pages of the menu with their addresses."""
MOST_FOUND = 20
MOST_PART = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Site:
    """The state that the routes share.

    Attributes:
        reader: The state.
        access: The port and the secret.
        writes: Whether corrections and retries are taken.
        engine: The engine of such a change.
        file: The pipeline file as the user named it.
        jobs: Changes that pages asked for.
    """

    reader: Reader
    access: Access
    writes: bool
    engine: EngineOptions
    file: str
    jobs: Jobs

    @property
    def links(self) -> Links:
        """The addresses of pages."""
        return Links(live=True, writes=self.writes, form_token=self.access.form_token if self.writes else "", origin=self.access.origin)

    def warm_up(self) -> None:
        """Make the first page once, so that the ledger is read before somebody asks. What is wrong then shows on the page."""
        with suppress(Failure, PipelineErrors, EngineUnavailable), self.reader.reading() as current:
            self.page(current, "", "Overview", "overview.html", overview(current.history, self.links))

    def page(self, current: Current, here: str, title: str, template: str, view: Any) -> Response:
        """Return a whole page."""
        body = rendering.fragment(template, view=view, links=self.links)
        return HTMLResponse(self._framed(current, here, title, body))

    def _framed(self, current: Current, here: str, title: str, body: Any) -> str:
        reading = current.history.reading
        return rendering.render(
            "page.html", pipeline=short(reading.name, 80), title=short(title, 120), menu=MENU, here=here, body=body, epoch=reading.last,
            problems=paragraphs(current.problems, 5_000), writes=self.writes,
        )  # fmt: skip


def application(site: Site) -> Starlette:
    """Return the application with all its routes."""
    shown = {
        "/": _overview, "/calendar": _calendar, "/output": _output, "/node": _node, "/changes": _changes, "/row": _row, "/letters": _letters, "/expectations": _expectations,
        "/runs": _runs, "/restless": _restless, "/next": _next, "/live": _live, "/job": _job,
    }  # fmt: skip
    routes = [Route(path, _answering(site, answer), methods=["GET"]) for path, answer in shown.items()]
    routes += [Route("/static/{name}", _static, methods=["GET"]), Route("/favicon.ico", lambda _request: Response(status_code=204), methods=["GET"])]
    if site.writes:
        routes += [Route("/actions/retry", _changing(site, _retry), methods=["POST"]), Route("/actions/correct", _changing(site, _correct), methods=["POST"]), Route("/actions/decide", _changing(site, _decide), methods=["POST"])]
    refusal = "This address takes no such request." if site.writes else "This server only shows."
    missing = {404: lambda _request, _problem: _problem_page("There is no such page.", status=404), 405: lambda _request, _problem: _problem_page(refusal, status=405)}
    return Starlette(routes=routes, middleware=[Middleware(Guard, access=site.access)], exception_handlers=missing)


# -- answering


def _answering(site: Site, answer: Callable[[Site, Request], Response]) -> Callable[[Request], Response]:
    def answered(request: Request) -> Response:
        try:
            return answer(site, request)
        except (Failure, PipelineErrors, EngineUnavailable) as problem:
            return _failed(problem)

    return answered


def _changing(site: Site, begin: Callable[[Site, Any], Job]) -> Callable[[Request], Any]:
    async def answered(request: Request) -> Response:
        try:
            form = await form_of(request)
            if not site.access.is_form_token(form.get("form_token")):
                return _problem_page("This form is of another start of the server. Load its page again.", status=403)
            job = await run_in_threadpool(begin, site, form)
        except Usage as problem:
            return _failed(problem, usage=400)
        except (Failure, PipelineErrors) as problem:
            return _failed(problem)
        return RedirectResponse(site.links.page("job", number=job.number), 303)

    return answered


def _failed(problem: Exception, *, usage: int = 404) -> Response:
    if isinstance(problem, PipelineErrors):
        return _problem_page("The pipeline file has errors.", detail=redacted(as_text(problem.diagnostics, color=False)), status=500)
    status = usage if isinstance(problem, Usage) else 503
    return _problem_page(redacted(str(getattr(problem, "message", problem))), getattr(problem, "help", ""), status=status)


def _problem_page(message: str, help: str = "", *, detail: str = "", status: int) -> Response:
    return HTMLResponse(rendering.render("problem.html", message=paragraphs(message, 1_000), help=paragraphs(redacted(help), 1_000), detail=paragraphs(detail, 20_000)), status)


def _static(request: Request) -> Response:
    name = request.path_params["name"]
    if name == "pages.css":
        return Response(rendering.stylesheet(), media_type="text/css")
    if name in ("htmx.min.js", "htmx.LICENSE.txt"):
        return FileResponse(rendering.FOLDER / "static" / name)
    return _problem_page("There is no such file.", status=404)


def _number(request: Request, name: str, default: int = 1) -> int:
    text = request.query_params.get(name, "")
    return min(int(text), MOST_PART) if text.isascii() and text.isdigit() and len(text) < 12 else default


def _word(request: Request, name: str) -> str:
    text = request.query_params.get(name, "")
    if not text:
        raise Usage(f"the address lacks {name}")
    return text


def _epoch(request: Request) -> int:
    """The epoch of an address. Raises Usage where it has none, or a word that is none."""
    text, epoch = _word(request, "epoch"), _number(request, "epoch", 0)
    if not epoch:
        raise Usage(f"'{text}' is no epoch", help="epochs are numbered from 1")
    return epoch


# -- pages


def _overview(site: Site, request: Request) -> Response:
    with site.reader.reading() as current:
        return site.page(current, "", "Overview", "overview.html", overview(current.history, site.links, _number(request, "part")))


def _calendar(site: Site, request: Request) -> Response:
    with site.reader.reading() as current:
        return site.page(current, "calendar", "Epochs", "calendar.html", calendar(current.history, _number(request, "part"), _number(request, "nodes")))


def _output(site: Site, request: Request) -> Response:
    with site.reader.reading() as current:
        name = request.query_params.get("name") or next(outputs(current.history), "")
        if not name:
            raise Usage.no_run()
        return site.page(current, "output", f"Corrections of {name}", "output.html", corrections(current.history, name, _number(request, "part")))


def _node(site: Site, request: Request) -> Response:
    name, field, value = _word(request, "name"), request.query_params.get("field", ""), request.query_params.get("value", "")
    with site.reader.reading(engine=bool(field)) as current:
        found = live_matches(current.history.reading, name, {field: value}, MOST_FOUND) if field else None
        view = node_page(current.history, name, _number(request, "part"), (short(field), short(value)), found)
        return site.page(current, "", f"Node {name}", "node.html", view)


def _changes(site: Site, request: Request) -> Response:
    name, epoch = _word(request, "node"), _epoch(request)
    with site.reader.reading() as current:
        stored = current.history.stored(name)
    with site.reader.reading(engine=not stored) as current:
        view = changes_page(current.history, name, epoch, _number(request, "part"))
        return site.page(current, "", f"{name} in epoch {epoch}", "changes.html", view)


def _row(site: Site, request: Request) -> Response:
    name, key, why = _word(request, "node"), _word(request, "key"), bool(request.query_params.get("why"))
    with site.reader.reading() as current:
        stored = current.history.stored(name)
    with site.reader.reading(engine=why or not stored) as current:
        view = story(current.history, name, key, f"errata why {shlex.quote(site.file)}", why=why)
        return site.page(current, "", f"A row of {name}", "row.html", view)


def _letters(site: Site, request: Request) -> Response:
    with site.reader.reading(engine=True) as current:
        view = dead_letters(site.reader.letters(current), request.query_params.get("trigger", ""), _number(request, "part"))
        return site.page(current, "letters", "Rejected records", "letters.html", view)


def _expectations(site: Site, request: Request) -> Response:
    with site.reader.reading() as current:
        view = expectations_page(current.history, _number(request, "part"))
        return site.page(current, "expectations", "Expectations", "expectations.html", view)


def _runs(site: Site, request: Request) -> Response:
    with site.reader.reading() as current:
        return site.page(current, "runs", "Runs", "runs.html", runs(current.history, _number(request, "part")))


def _restless(site: Site, request: Request) -> Response:
    with site.reader.reading() as current:
        return site.page(current, "restless", "Rows that changed most", "restless.html", restless_page(current.history))


def _next(site: Site, request: Request) -> Response:
    with site.reader.reading() as current:
        view = NextRun("", (), idle=False, problem="the pipeline file has errors") if current.pipeline is None else next_run(current.pipeline.loaded)
        return site.page(current, "next", "The next run", "next.html", view)


def _live(site: Site, request: Request) -> Response:
    """A part of each page: whether a newer epoch is there."""
    with site.reader.reading() as current:
        return HTMLResponse(rendering.render("live.html", epoch=_number(request, "epoch", 0), last=current.history.reading.last))


# -- changes


def _job(site: Site, request: Request) -> Response:
    job = site.jobs.find(_word(request, "number"))
    if job is None:
        raise Usage("this server knows no such change")
    with site.reader.reading() as current:
        return site.page(current, "", job.title, "job.html", job)


def _retry(site: Site, form: Any) -> Job:
    group = form.get("group", "")
    if not group:
        raise Usage("the form lacks the group")

    def work() -> tuple[list[Row], RunResult]:
        return [], site.reader.loaded().dlq_retry(group, RunOptions(engine=site.engine))

    return site.jobs.begin(f"Try group {short(group, 80)} again", work)


def _decide(site: Site, form: Any) -> Job:
    action, reason, to = form.get("action", ""), form.get("reason", "").strip(), form.get("to", "").strip()
    if action not in ("assign", "waive", "unwaive"):
        raise Usage("the form lacks what is decided")
    if action == "waive" and not reason:
        raise Usage("a waiver needs a reason", help="go back and give one")
    names = [form["id"]] if form.get("id") else _of_trigger(site, form.get("trigger", ""))
    decision = LetterDecision(action, reason, "", to if action == "assign" else "")

    def work() -> tuple[list[Row], RunResult]:
        return [], site.reader.loaded().dlq_decide(LetterChoice(names), decision, RunOptions(engine=site.engine))

    verb = {"assign": "Assign", "waive": "Waive", "unwaive": "Take back the waivers of"}[action]
    return site.jobs.begin(f"{verb} {len(names):,} {'entry' if len(names) == 1 else 'entries'}", work)


def _of_trigger(site: Site, name: str) -> list[str]:
    """The ids of a trigger's entries. Raises Usage where it is gone."""
    with site.reader.reading(engine=True) as current:
        letters = site.reader.letters(current)
        found = next((one for one in letters.triggers if one.name == name), None)
        if found is None:
            raise Usage("these records are rejected no more", help="load the page of rejected records again")
        return letters.ids(found)


def _correct(site: Site, form: Any) -> Job:
    source, trial, reason = form.get("source", ""), bool(form.get("dry_run")), form.get("reason", "").strip()
    was = below(form, "was.")
    changes = {} if form.get("retract") else {name: text for name, text in below(form, "set.").items() if text != was.get(name)}
    if not source or not reason:
        raise Usage("a correction needs a source and a reason")
    if not changes and not form.get("retract"):
        raise Usage("no value was changed", help="go back and change one")
    correction = Correction(source, below(form, "key."), changes, reason)

    def work() -> tuple[Any, RunResult]:
        return site.reader.loaded().correct(correction, RunOptions(engine=site.engine, dry_run=trial))

    return site.jobs.begin(f"{'Effect of a correction of' if trial else 'Correct a record of'} {short(source, 80)}", work, trial=trial)
