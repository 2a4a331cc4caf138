"""Tokens in output paths."""

from datetime import UTC, datetime

import pytest

from storage.files.path_tokens import PathTemplate, TokenError, TokenValues

VALUES = TokenValues(
    source_names={"orders": "jan"}, batch_id="b-1", execution_id="e-1", started=datetime(2024, 3, 5, 6, 7, 8, tzinfo=UTC),
    pipeline_hash="0123456789abcdef" * 4, channel=None, source_file="mon", epoch=3,
)  # fmt: skip


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("out.csv", "out.csv"),
        ("{source_name}/{batch_id}.csv", "jan/b-1.csv"),
        ("{source_name:orders}", "jan"),
        ("{pipeline_hash}-{pipeline_hash:3}-{pipeline_hash:full}", "01234567-012-" + "0123456789abcdef" * 4),
        ("{timestamp}", "2024-03-05T06-07-08Z"),
        ("o{channel:-:!}{execution_id:-:!}", "o-e-1!"),
        ("{source_name:orders:<:>}", "<jan>"),
        ("{{x}}{source_file}.{epoch}", "{x}mon.3"),
        ("{epoch:6}-{epoch:1}-{epoch:<:>}{epoch:2:<:>}", "000003-3-<3><03>"),
        ("{n}", ""),
    ],
)
def test_rendering(path, text):
    assert PathTemplate.parse(path).render(VALUES) == text


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("{nope}", "path '{nope}' has the unknown token '{nope}'"),
        ("a}", "path 'a}' has a single '}'"),
        ("{a", "path '{a' has a single '{'"),
        ("{batch_id:x}", "has more parts than '{batch_id:prefix:suffix}'"),
        ("{source_name:a:b:c:d}", "has more parts"),
        ("{pipeline_hash:65}", "takes 'full' or a number of digits from 1 to 64"),
        ("{epoch:0}", "'{epoch:0}' takes a number of digits from 1 to 18"),
        ("{epoch:full}", "takes a number of digits from 1 to 18"),
        ("{epoch:}", "takes a number of digits from 1 to 18"),
    ],
)
def test_refused_templates(path, message):
    with pytest.raises(TokenError) as caught:
        PathTemplate.parse(path)
    assert message in str(caught.value)


def test_several_sources_have_to_be_named():
    two = TokenValues(source_names={"a": "x", "b": "y"})
    with pytest.raises(TokenError, match="could be any of a, b"):
        PathTemplate.parse("{source_name}").render(two)
    assert PathTemplate.parse("{source_name:b}").render(two) == "y"
    with pytest.raises(TokenError, match="no source of that name"):
        PathTemplate.parse("{source_name:c}").render(two)
    assert PathTemplate.parse("{source_name}").render(TokenValues()) == ""


def test_epochs_that_outgrow_their_digits_are_whole():
    assert PathTemplate.parse("{epoch:1}-{epoch:3}").render(TokenValues(epoch=1000)) == "1000-1000"
    assert PathTemplate.parse("{epoch:3}").render(TokenValues()) == ""


def test_uses():
    assert PathTemplate.parse("{source_file:-:}").by_file
    assert not PathTemplate.parse("{{source_file}}").by_file
