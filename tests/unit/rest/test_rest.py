"""Sources that read a REST service, against a local server that pages, fails, redirects and records its requests."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from storage import formats
from storage.formats import InputError, ReadPlan
from storage.rest.addresses import is_public
from storage.rest.cache import fetch
from storage.rest.client import Pull
from storage.rest.config import Rest
from tests.support.examples import examples
from tests.support.json_service import Answer, Asked, serving
from tests.support.pipelines import Folder, command, standing_in

Answering = Callable[[Asked], Answer]


def records(body: bytes) -> tuple[bytes, ...]:
    return tuple(json.dumps(one).encode() for one in json.loads(body)["items"])


def page(items: Sequence[Any], **more: Any) -> Answer:
    return Answer(json.dumps({"items": list(items), **more}).encode())


def rest(url: str, **keys: Any) -> Rest:
    given = {"kind": "rest", "url": url, "max_pages": 50, "allow_http": True, "allow_private": True, **keys}
    return Rest.model_validate(given)


def pulled(url: str, pauses: list[float] | None = None, **keys: Any) -> list[Any]:
    """All records of a pull."""
    pull = Pull(rest(url, **keys), "<source:s>", records, pause=([] if pauses is None else pauses).append)
    return [json.loads(line) for one in pull.pages() for line in one.lines or ()]


def by_offset(items: Sequence[Any]) -> Answering:
    def answer(asked: Asked) -> Answer:
        at, count = int(asked.query["offset"]), int(asked.query["limit"])
        return page(items[at : at + count])

    return answer


def by_token(items: Sequence[Any], count: int) -> Answering:
    def answer(asked: Asked) -> Answer:
        at = int(asked.query.get("page", "0"))
        return page(items[at : at + count], meta={"next": str(at + count) if at + count < len(items) else None})

    return answer


def by_link(items: Sequence[Any], count: int) -> Answering:
    def answer(asked: Asked) -> Answer:
        at = int(asked.query.get("at", "0"))
        link = {"Link": f'</rows?at={at + count}>; rel="next", </rows>; rel="first"'} if at + count < len(items) else {}
        return Answer(page(items[at : at + count]).body, headers=link)

    return answer


TOKEN = {"strategy": "cursor_token", "cursor_param": "page", "next_token_pointer": "/meta/next"}


# Pages
@given(count=st.integers(0, 23), size=st.integers(1, 7))
@examples(15)
def test_every_strategy_gives_every_record_once_in_order(count, size):
    items = list(range(count))
    with serving(by_offset(items)) as service:
        assert pulled(f"{service.url}/rows", pagination={"strategy": "offset", "limit": size}) == items
        assert len(service.asked) == count // size + 1
    with serving(by_token(items, size)) as service:
        assert pulled(f"{service.url}/rows", pagination=TOKEN) == items
    with serving(by_link(items, size)) as service:
        assert pulled(f"{service.url}/rows", pagination={"strategy": "link_header"}) == items


def test_a_query_of_the_url_goes_along_with_every_page():
    with serving(by_offset(list(range(5)))) as service:
        pulled(f"{service.url}/rows?kind=a%20b", pagination={"strategy": "offset", "limit": 3})
        assert [asked.query for asked in service.asked] == [
            {"kind": "a b", "offset": "0", "limit": "3"},
            {"kind": "a b", "offset": "3", "limit": "3"},
        ]


def test_pages_end_at_max_pages_although_the_server_has_more():
    endless = lambda asked: page([1], meta={"next": str(int(asked.query.get("page", "0")) + 1)})  # noqa: E731
    with serving(endless) as service:
        pull = Pull(rest(service.url, max_pages=4, pagination=TOKEN), "<source:s>", records)
        assert len(list(pull.pages())) == 4
        assert pull.capped == "max_pages"
        assert len(service.asked) == 4


def test_a_page_that_leads_back_is_an_error():
    with serving(lambda asked: page([1], meta={"next": "7"})) as service, pytest.raises(InputError, match="leads back"):
        pulled(service.url, pagination=TOKEN)


# Failures
def failing(times: int, answer: Answer) -> Answering:
    left = [times]

    def of(_: Asked) -> Answer:
        left[0] -= 1
        return answer if left[0] >= 0 else page([1, 2])

    return of


@pytest.mark.parametrize("answer", [Answer(status=500), Answer(status=503), Answer(b'{"items": [', cut=True)])
def test_what_passes_is_asked_for_again(answer):
    pauses: list[float] = []
    with serving(failing(2, answer)) as service:
        assert pulled(service.url, pauses) == [1, 2]
        assert len(service.asked) == 3
    assert len(pauses) == 2
    assert 0 < pauses[0] < pauses[1]


def test_what_stays_broken_ends_the_pull_after_its_retries():
    with serving(failing(99, Answer(status=502))) as service:
        with pytest.raises(InputError, match=r"<source:s>: page 1: the server answers 502 Bad Gateway \(3 attempts\)"):
            pulled(service.url, retries=2)
        assert len(service.asked) == 3


@pytest.mark.parametrize("status", [400, 401, 404, 429])
def test_a_refusal_is_not_asked_again(status):
    with serving(failing(99, Answer(status=status))) as service:
        with pytest.raises(InputError, match=f"answers {status}"):
            pulled(service.url)
        assert len(service.asked) == 1


def test_an_unreachable_service_is_reported_with_the_attempts():
    with serving(lambda _: page([])) as service:
        gone = service.url
    with pytest.raises(InputError, match=r"ConnectError.*2 attempts"):
        pulled(gone, retries=1)


BROKEN = [
    ("json", {"format": "array"}, b'[{"id": 1},\n {"id": 2,}]', "page 2: line 2: not valid JSON: "),
    ("xml", {"record_path": "//r"}, b"<x>\n<r></x>", "page 2: line 2: not well-formed XML: mismatched tag, column 6"),
]


@pytest.mark.parametrize(("form", "options", "body", "message"), BROKEN)
def test_a_broken_page_is_reported_with_its_number_and_place(form, options, body, message):
    reader = formats.reader(form, options, ReadPlan(()))
    good = {"json": b"[]", "xml": b"<x/>"}[form]
    answer = lambda asked: Answer(body) if asked.query else Answer(good, headers={"Link": '</rows?at=2>; rel="next"'})  # noqa: E731
    with serving(answer) as service:
        pull = Pull(rest(service.url, pagination={"strategy": "link_header"}), "<source:s>", lambda text: tuple(reader.lines(text, "<source:s>")))
        with pytest.raises(InputError) as caught:
            list(pull.pages())
    assert str(caught.value).startswith(f"<source:s>: {message}")


def test_a_pull_ends_with_its_seconds_and_its_bytes():
    with serving(lambda asked: page([1] * 1000, meta={"next": str(len(service.asked))})) as service:
        with pytest.raises(InputError, match="more than 5,000 bytes"):
            pulled(service.url, pagination=TOKEN, max_bytes=5000)
        ticks = iter(range(1000))
        pull = Pull(rest(service.url, pagination=TOKEN, max_seconds=10), "<source:s>", records, clock=lambda: float(next(ticks)))
        with pytest.raises(InputError, match="longer than 10 seconds"):
            list(pull.pages())


def test_compressed_bytes_count_as_what_they_become():
    import gzip

    body = gzip.compress(json.dumps({"items": ["x" * 10_000_000]}).encode())
    with serving(lambda _: Answer(body, headers={"Content-Encoding": "gzip"})) as service, pytest.raises(InputError, match="more than 100,000 bytes"):
        pulled(service.url, max_bytes=100_000)


# Security
@pytest.mark.parametrize(
    ("auth", "header"),
    [
        ({"scheme": "bearer", "token": "s3cret"}, ("authorization", "Bearer s3cret")),
        ({"scheme": "header", "name": "X-API-Key", "value": "s3cret"}, ("x-api-key", "s3cret")),
    ],
)
def test_the_credential_goes_along_and_is_shown_nowhere(auth, header):
    with serving(by_link(list(range(4)), 2)) as service:
        pulled(f"{service.url}/rows", auth=auth, pagination={"strategy": "link_header"})
        assert [asked.headers[header[0]] for asked in service.asked] == [header[1]] * 2
        assert "s3cret" not in repr(rest(service.url, auth=auth)) + rest(service.url, auth=auth).model_dump_json()


@pytest.mark.parametrize("how", ["redirect", "link"])
def test_no_other_origin_is_asked(how):
    with serving(lambda _: page([9])) as other:
        answers = {
            "redirect": Answer(status=302, headers={"Location": f"{other.url}/rows"}),
            "link": Answer(page([1]).body, headers={"Link": f'<{other.url}/rows>; rel="next"'}),
        }
        with serving(lambda _: answers[how]) as service, pytest.raises(InputError, match="another origin"):
            pulled(service.url, pagination={"strategy": "link_header"}, auth={"scheme": "bearer", "token": "t"})
        assert other.asked == []


def test_redirects_inside_the_origin_are_followed_a_few_times():
    def answer(asked: Asked) -> Answer:
        left = int(asked.query.get("n", "0"))
        return page(["there"]) if not left else Answer(status=307, headers={"Location": f"/rows?n={left - 1}"})

    with serving(answer) as service:
        assert pulled(f"{service.url}/rows?n=5") == ["there"]
        with pytest.raises(InputError, match="more than 5 redirects"):
            pulled(f"{service.url}/rows?n=6")


def test_private_addresses_are_refused_before_anything_is_sent():
    with serving(lambda _: page([1])) as service:
        with pytest.raises(InputError, match=r"page 1: 127\.0\.0\.1 is no public address"):
            pulled(service.url, allow_private=False)
        with pytest.raises(InputError, match=r"localhost is .*, which is no public address"):
            pulled(service.url.replace("127.0.0.1", "localhost"), allow_private=False)
        assert service.asked == []


@pytest.mark.parametrize(
    "address",
    ["127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0", "224.0.0.1", "::1", "fe80::1%eth0", "fd00::1",  # noqa: S104 - an address that is refused
     "::ffff:127.0.0.1", "64:ff9b::a9fe:a9fe", "2002:7f00:1::"],
)  # fmt: skip
def test_addresses_that_are_not_public(address):
    assert not is_public(address)


@pytest.mark.parametrize("address", ["93.184.216.34", "2606:2800:220:1:248:1893:25c8:1946", "::ffff:93.184.216.34"])
def test_addresses_that_are_public(address):
    assert is_public(address)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"url": "ftp://a/b"}, "http or https"),
        ({"url": "https://me:pw@a/b"}, "credentials belong to auth"),
        ({"max_pages": 0}, "max_pages"),
        ({"auth": {"scheme": "header", "name": "a b", "value": "x"}}, "name"),
    ],
)
def test_settings_that_are_none(keys, message):
    with pytest.raises(ValidationError, match=message):
        rest(**{"url": "http://127.0.0.1", **keys})


@pytest.mark.parametrize(
    ("keys", "wanted"),
    [
        ({"allow_http": False}, "not encrypted"),
        ({"pagination": {"strategy": "offset"}}, "needs limit"),
        ({"pagination": {"strategy": "cursor_token", "cursor_param": "c"}}, "next_token_pointer"),
        ({"pagination": {"strategy": "none", "limit": 5}}, "'limit' belongs to strategy 'offset'"),
        ({"auth": {"scheme": "bearer"}}, "needs token"),
        ({"auth": {"scheme": "none", "token": "x"}}, "takes no token"),
    ],
)
def test_settings_that_do_not_go_together(keys, wanted):
    ((_, message),) = rest(**{"url": "http://127.0.0.1", **keys}).misfits()
    assert wanted in message


# Cached records
def remembering(pages: Mapping[str, Sequence[Any]]) -> Answering:
    """Pages whose ETags are their content. A known page is not sent again."""

    def answer(asked: Asked) -> Answer:
        number = int(asked.query.get("page", "1"))
        body = page(pages[str(number)], meta={"next": number + 1 if str(number + 1) in pages else None}).body
        tag = f'"{hash(body)}"'
        return Answer(status=304) if asked.headers.get("if-none-match") == tag else Answer(body, headers={"ETag": tag})

    return answer


def test_a_known_page_is_not_sent_again_and_nothing_changes(tmp_path):
    pages = {"1": [{"a": 1}], "2": [{"a": 2}], "3": [{"a": 3}]}
    with serving(remembering(pages)) as service:
        given = rest(service.url, pagination=TOKEN)
        fetch(given, "<source:s>", tmp_path, records)
        before = (tmp_path / "records.ndjson").stat()
        assert (tmp_path / "records.ndjson").read_text() == '{"a": 1}\n{"a": 2}\n{"a": 3}\n'
        pull = fetch(given, "<source:s>", tmp_path, records)
        assert (pull.size, (tmp_path / "records.ndjson").stat().st_mtime_ns) == (0, before.st_mtime_ns)
        pages["2"] = [{"a": 20}, {"a": 21}]
        fetch(given, "<source:s>", tmp_path, records)
        assert (tmp_path / "records.ndjson").read_text() == '{"a": 1}\n{"a": 20}\n{"a": 21}\n{"a": 3}\n'
        del pages["3"]
        fetch(given, "<source:s>", tmp_path, records)
        assert (tmp_path / "records.ndjson").read_text() == '{"a": 1}\n{"a": 20}\n{"a": 21}\n'
        assert len(list(tmp_path.glob("page-*"))) == 2


def test_a_pull_that_breaks_leaves_the_records_as_they_were(tmp_path):
    pages = {"1": [{"a": 1}], "2": [{"a": 2}]}
    broken: list[int] = []
    with serving(lambda asked: Answer(status=500) if asked.query.get("page") in broken else remembering(pages)(asked)) as service:
        given = rest(service.url, pagination=TOKEN, retries=0)
        fetch(given, "<source:s>", tmp_path, records)
        pages["1"] = [{"a": 10}]
        broken.append("2")
        with pytest.raises(InputError):
            fetch(given, "<source:s>", tmp_path, records)
        assert (tmp_path / "records.ndjson").read_text() == '{"a": 1}\n{"a": 2}\n'
        broken.clear()
        fetch(given, "<source:s>", tmp_path, records)
        assert (tmp_path / "records.ndjson").read_text() == '{"a": 10}\n{"a": 2}\n'


def test_max_records_cuts_the_last_page(tmp_path):
    with serving(by_offset([{"n": n} for n in range(20)])) as service:
        pull = fetch(rest(service.url, pagination={"strategy": "offset", "limit": 4}, max_records=6), "<source:s>", tmp_path, records)
        assert (tmp_path / "records.ndjson").read_text().count("\n") == 6
        assert (len(service.asked), pull.capped) == (2, "max_records")


@pytest.mark.parametrize(("count", "capped"), [(6, None), (7, "max_records")])
def test_a_last_page_that_is_cut_is_reported(tmp_path, count, capped):
    with serving(lambda _: page([{"n": n} for n in range(count)])) as service:
        pull = fetch(rest(service.url, max_records=6), "<source:s>", tmp_path, records)
        assert ((tmp_path / "records.ndjson").read_text().count("\n"), pull.capped) == (6, capped)


# Through a pipeline
PIPELINE = """
pipeline: {name: service}
error_handling: {strategy: continue, dlq: {path: dlq.csv}}
nodes:
  - type: source
    name: orders
    config:
      name: orders
      type: FORMAT
      options: OPTIONS
      transport: {kind: rest, url: "URL", max_pages: 9, allow_http: true, allow_private: true, retries: 0, pagination: {strategy: link_header},
                  auth: {scheme: bearer, token: "${ORDERS_TOKEN:-none}"}}
      schema: [{name: id, type: int}, {name: total, type: float}]
  - {type: transform, name: t, input: orders, config: {cxl: "emit file = $source.file\\nemit row = $source.row\\n"}}
  - {type: output, name: out, input: t, config: {name: out, type: csv, path: out.csv, if_exists: overwrite}}
"""


def of_service(path: Path, url: str, format_: str, options: str) -> Folder:
    folder = Folder(path)
    folder.write("pipeline.yaml", PIPELINE.replace("FORMAT", format_).replace("OPTIONS", options).replace("URL", f"{url}/rows"))
    return folder


def test_a_service_is_read_diffed_and_its_bad_records_go_to_the_dlq(tmp_path):
    items: list[Any] = [{"id": 1, "total": 1.5, "note": "x"}, {"id": 2, "total": 2}, 7, {"id": "x", "total": 3}, {"id": 5, "total": 5}]
    with serving(by_link(items, 2)) as service:
        folder = of_service(tmp_path, service.url, "json", "{format: object, record_path: items}")
        result = folder.run()
        assert result.exit_code == 2
        assert folder.text("out.csv") == "id,total,file,row,note\n1,1.5,<source:orders>,1,x\n2,2,<source:orders>,2,\n5,5,<source:orders>,5,\n"
        assert [(row["_cxl_dlq_source_file"], row["_cxl_dlq_source_row"]) for row in folder.rows("dlq.csv")] == [("<source:orders>", "3"), ("<source:orders>", "4")]
        assert not folder.run().committed
        items[1] = {"id": 2, "total": 20}
        folder.run()
        assert "\n2,20,<source:orders>,2,\n" in folder.text("out.csv")
        assert {row["data"]["id"] for row in folder.log("orders") if row["epoch"] == 2} == {2}


def test_pages_of_xml(tmp_path):
    def answer(asked: Asked) -> Answer:
        at = int(asked.query.get("at", "0"))
        link = {"Link": f'</rows?at={at + 1}>; rel="next"'} if at < 2 else {}
        return Answer(f"<?xml version='1.0'?><d><o id='{at}'><total>{at}.5</total></o></d>".encode(), headers=link)

    with serving(answer) as service:
        folder = of_service(tmp_path, service.url, "xml", '{record_path: "//o", attribute_prefix: ""}')
        folder.run()
        assert [row["id"] + "=" + row["total"] for row in folder.rows("out.csv")] == ["0=0.5", "1=1.5", "2=2.5"]


@pytest.mark.parametrize(("answer", "message"), [(Answer(b"{"), "not valid JSON"), (Answer(status=404), "404 Not Found"), (Answer(b"[]"), "no object")])
def test_a_service_that_fails_changes_nothing(tmp_path, answer, message):
    current = [page([{"id": 1, "total": 1}])]
    with serving(lambda _: current[0]) as service:
        folder = of_service(tmp_path, service.url, "json", "{format: object, record_path: items}")
        folder.run()
        before = folder.text("out.csv")
        current[0] = answer
        with standing_in(tmp_path):
            code, _, error = command("run", "pipeline.yaml")
        assert (code, folder.text("out.csv")) == (4, before)
        assert message in error
        assert "<source:orders>" in error


def test_a_check_asks_nothing(tmp_path):
    with serving(lambda _: page([])) as service:
        folder = of_service(tmp_path, service.url, "json", "{format: object, record_path: items}")
        with standing_in(folder.path):
            assert command("check", "pipeline.yaml")[0] == 0
            assert command("explain", "pipeline.yaml")[0] == 0
        assert service.asked == []


def test_a_run_warns_of_what_lies_beyond_its_limits(tmp_path):
    with serving(by_link([{"id": 1, "total": 1}, {"id": 2, "total": 2}, {"id": 3, "total": 3}], 1)) as service:
        folder = of_service(tmp_path, service.url, "json", "{format: object, record_path: items}")
        folder.write("pipeline.yaml", folder.text("pipeline.yaml").replace("max_pages: 9", "max_pages: 2"))
        with standing_in(folder.path):
            code, _, stderr = command("run", "pipeline.yaml", "--engine", "sail", "--quiet")
        assert (code, folder.text("out.csv").count("\n")) == (0, 3)
        assert stderr == "warning: source 'orders': the service has more than max_pages (2) lets through: what lies beyond was not read\n"


def test_a_plan_asks_nothing_and_says_so(tmp_path):
    with serving(lambda _: page([{"id": 1, "total": 1}])) as service:
        folder = of_service(tmp_path, service.url, "json", "{format: object, record_path: items}")
        folder.run()
        asked = len(service.asked)
        planned = [(row["node"], row["action"], row["reason"]) for row in folder.load().plan_next()]
        assert planned[:2] == [("orders", "delta", "only the run asks the service"), ("t", "delta", "input changed: orders")]
        assert len(service.asked) == asked


def test_a_token_that_changes_is_no_change_of_logic(tmp_path, monkeypatch):
    with serving(lambda _: page([{"id": 1, "total": 1}])) as service:
        folder = of_service(tmp_path, service.url, "json", "{format: object, record_path: items}")
        folder.run()
        monkeypatch.setenv("ORDERS_TOKEN", "t0psecret")
        assert not folder.run().committed
        assert service.asked[-1].headers["authorization"] == "Bearer t0psecret"
        kept = b"".join(file.read_bytes() for file in (tmp_path / ".errata").rglob("*") if file.is_file())
        assert b"t0psecret" not in kept


@pytest.mark.parametrize(
    ("transport", "message"),
    [("{kind: ftp}", "'transport': kind must be 'file' or 'rest', not 'ftp'"), ("{url: https://a.b, max_pages: 1}", "missing key 'kind' in 'transport'"), ("ftp", "must be 'file' or a map")],
)
def test_a_transport_of_another_kind_is_reported_once(tmp_path, transport, message):
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", f"pipeline: {{name: p}}\nnodes:\n  - {{type: source, name: s, config: {{name: s, type: json, transport: {transport}, schema: [{{name: a, type: int}}]}}}}\n")
    with standing_in(folder.path):
        code, _, error = command("check", "pipeline.yaml")
    assert (code, message in error, error.count("error[")) == (1, True, 1)
