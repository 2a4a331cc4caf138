"""Secrets of the environment stay out of every message."""

from pathlib import Path

import pytest

from errata.cli.console import Console
from errata.core.env_references import collected_secrets, redacted
from errata.core.failures import Stopped
from errata.yaml import parse_yaml


def test_a_secret_is_blanked_out_while_a_command_lasts() -> None:
    with collected_secrets():
        parse_yaml(
            "a: ${secret:TOKEN}\nb: ${secret:LONG}\nc: ${secret:TINY}", env={"TOKEN": "s3cret", "LONG": "s3cret-and-more", "TINY": "on"}
        )
        assert redacted("uses s3cret, s3cret-and-more and on") == "uses ***, *** and on"
    assert redacted("s3cret") == "s3cret"


def test_failures_and_notes_are_blanked_out(capsys: pytest.CaptureFixture[str]) -> None:
    with collected_secrets():
        parse_yaml("a: ${secret:TOKEN}", env={"TOKEN": "s3cret"})
        console = Console()
        console.failure("401 for s3cret")
        console.note("asked with s3cret")
        console.explain("auth: s3cret\n")
    output, errors = capsys.readouterr()
    assert "s3cret" not in output + errors


def test_a_failing_command_does_not_tell(call, failing, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN_OF_A_TEST", "s3cret")
    application = failing(Stopped("the service refused s3cret"))
    application.epoch = None
    load = application.load
    monkeypatch.setattr(
        "errata.api.pipeline.load", lambda *given, **settings: (parse_yaml("a: ${secret:TOKEN_OF_A_TEST}"), load(*given, **settings))[1]
    )
    assert "refused ***" in call("run p.yaml")[2]
