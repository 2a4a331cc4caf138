"""Channels: their changes to a pipeline, and their errors."""

from pathlib import Path
from typing import Any

import pytest

from errata.core.diagnostics import PipelineErrors
from errata.project.channels.overlay import Overlay, apply, find_channel, load_channel
from errata.yaml import Document, load_yaml

PIPELINE = """\
pipeline:
  name: p
  vars:
    limit: 5
    rate: {type: float, default: 0.5}
    pipeline:
      cutoff: {type: int, default: 1}
    source:
      label: {type: string, default: prod}
nodes:
  - {type: source, name: east, config: {}}
  - {type: source, name: west, config: {}}
  - type: transform
    name: t
    config:
      declares: [{name: tier, scope: record, type: string, default: bronze}]
  - {type: composition, name: scaling, use: scaled.comp.yaml, config: {factor: 3}}
  - {type: composition, name: other, alias: again, use: scaled.comp.yaml}
"""
COMPOSITION = "composition:\n  name: scaled\n  params: [{name: factor, type: int, default: 2}, {name: base, type: int, default: 0}]\n"


def _apply(folder: Path, channel: str, *, target: str = "p.yaml", environment: str | None = None) -> tuple[Overlay, dict[str, Any]]:
    (folder / "p.yaml").write_text(PIPELINE)
    (folder / "scaled.comp.yaml").write_text(COMPOSITION)
    path = folder / "acme.channel.yaml"
    path.write_text(f"channel: {{name: acme, target: {target}}}\n{channel}")
    document: Document = load_yaml(folder / "p.yaml")
    overlay = apply(load_channel(path), document, folder / "p.yaml", folder, environment)
    return overlay, document.value  # type: ignore[return-value]


def test_overrides_in_every_registry(tmp_path: Path) -> None:
    overlay, value = _apply(
        tmp_path,
        "vars:\n"
        "  static: {limit: {type: int, default: 30}, rate: {type: float, default: 1}}\n"
        "  pipeline: {cutoff: {type: int, default: 7}}\n"
        "  source: {west: {label: {type: string, default: west-x}}}\n"
        "  record: {tier: {type: string, default: gold}}\n",
    )
    assert overlay.diagnostics == []
    assert value["pipeline"]["vars"] == {
        "limit": {"type": "int", "default": 30},
        "rate": {"type": "float", "default": 1},
        "pipeline": {"cutoff": {"type": "int", "default": 7}},
        "source": {"label": {"type": "string", "default": "prod"}},
    }
    assert value["nodes"][2]["config"]["declares"][0]["default"] == "gold"
    assert overlay.source_variables == {("west", "label"): ("string", "west-x")}


def test_additions_to_every_registry(tmp_path: Path) -> None:
    overlay, value = _apply(
        tmp_path,
        "vars:\n"
        "  static: {region: {type: string, default: eu}}\n"
        "  pipeline: {day: {type: date, default: '2026-01-01'}}\n"
        "  record: {note: {type: string}}\n"
        "  source: {east: {batch_no: {type: int, default: 4}}}\n",
    )
    assert overlay.diagnostics == []
    block = value["pipeline"]["vars"]
    assert block["region"] == {"type": "string", "default": "eu"}
    assert block["pipeline"]["day"] == {"type": "date", "default": "2026-01-01"}
    assert block["record"] == {"note": {"type": "string", "default": None}}
    assert block["source"]["batch_no"] == {"type": "int"}
    assert overlay.source_variables == {("east", "batch_no"): ("int", 4)}


@pytest.mark.parametrize(
    ("channel", "code", "says"),
    [
        ("vars: {static: {limit: {type: string, default: many}}}", "E107", "variable 'limit' is declared int, overridden as string"),
        ("vars: {static: {limit: {type: int, default: many}}}", "E107", "the default of 'limit' is not of type int"),
        ("vars: {static: {limit: {type: int, default: true}}}", "E107", "the default of 'limit' is not of type int"),
        ("vars: {pipeline: {day: {type: date, default: someday}}}", "E107", "the default of 'day' is not of type date"),
        ("vars: {static: {x: {type: integer, default: 1}}}", "E107", "variable 'x': unknown type 'integer'"),
        ("vars: {source: {east: {x: {type: any, default: [1]}}}}", "E107", "variable 'x': unknown type 'any'"),
        (
            "vars: {pipeline: {execution_id: {type: string, default: a}}}",
            "E110",
            "'$pipeline.execution_id' is a system field; a channel cannot replace it",
        ),
        ("vars: {source: {east: {row: {type: int, default: 1}}}}", "E110", "'$source.row' is a system field; a channel cannot replace it"),
        ("vars: {source: {esat: {label: {type: string, default: a}}}}", "E111", "the pipeline has no source 'esat'"),
        ("config: {default: {scaling.faktor: 1}}", "W103", "'scaling.faktor' is no parameter of a composition in this pipeline"),
        ("config: {fixed: {other.factor: 1}}", "W103", "'other.factor' is no parameter of a composition in this pipeline"),
    ],
)
def test_findings(channel: str, code: str, says: str, tmp_path: Path) -> None:
    (found,) = _apply(tmp_path, channel)[0].diagnostics
    assert (found.code, found.message, found.is_error, found.line) == (code, says, code[0] == "E", 2)


def test_layers_of_parameters(tmp_path: Path) -> None:
    overlay, value = _apply(tmp_path, "config: {default: {scaling.factor: 10, again.factor: 6}, fixed: {scaling.factor: 7}}")
    given = {key: [(layer.kind, layer.value, layer.place.line) for layer in layers] for key, layers in overlay.layers.items()}
    assert given == {
        ("scaling", "factor"): [("channel default", 10, 2), ("channel fixed", 7, 2)],
        ("again", "factor"): [("channel default", 6, 2)],
    }
    assert value["nodes"][3]["config"] == {"factor": 3}  # the call itself stays as it was written


@pytest.mark.parametrize(
    ("target", "codes"), [("./p.yaml", []), ("sibling.yaml", ["W104"]), ("scaled.comp.yaml", []), ("else.comp.yaml", ["W104"])]
)
def test_target(target: str, codes: list[str], tmp_path: Path) -> None:
    assert [one.code for one in _apply(tmp_path, "", target=target)[0].diagnostics] == codes


def test_entries_for_one_environment(tmp_path: Path) -> None:
    channel = "vars: {static: {limit: {type: int, default: 9, when: [prod, test]}}}"
    assert _apply(tmp_path, channel, environment="prod")[1]["pipeline"]["vars"]["limit"] == {"type": "int", "default": 9}
    assert _apply(tmp_path, channel, environment="dev")[1]["pipeline"]["vars"]["limit"] == 5


@pytest.mark.parametrize("environment", ["prod", "dev", None])
@pytest.mark.parametrize("whole", [True, False])
def test_a_channel_or_its_parameters_for_one_environment(environment: str | None, whole: bool, tmp_path: Path) -> None:
    conditional = "when: prod\nconfig: {default: {scaling.factor: 10}}" if whole else "config: {when: [prod], default: {scaling.factor: 10}}"
    overlay, value = _apply(tmp_path, f"{conditional}\nvars: {{static: {{limit: {{type: int, default: 9}}}}}}", environment=environment)
    holds = environment == "prod"
    assert bool(overlay.layers) == holds
    assert value["pipeline"]["vars"]["limit"] == ({"type": "int", "default": 9} if holds or not whole else 5)
    assert overlay.channel == "acme"


def test_a_channel_of_a_composition_has_no_variables(tmp_path: Path) -> None:
    with pytest.raises(PipelineErrors) as caught:
        _apply(tmp_path, "vars: {static: {x: {type: int, default: 1}}}", target="scaled.comp.yaml")
    assert [one.code for one in caught.value.diagnostics] == ["E109"]


def test_unknown_keys_are_refused(tmp_path: Path) -> None:
    with pytest.raises(PipelineErrors) as caught:
        _apply(tmp_path, "varz: {}")
    assert [(one.code, one.help) for one in caught.value.diagnostics] == [("CFG-001", "did you mean 'vars'?")]


def test_a_channel_is_found_by_path_or_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pipeline = tmp_path / "pipelines" / "p.yaml"
    for folder in ("pipelines", "channels"):
        (tmp_path / folder).mkdir()
    named = tmp_path / "channels" / "acme.channel.yaml"
    beside = tmp_path / "pipelines" / "b.channel.yaml"
    for file in (named, beside):
        file.write_text("")
    monkeypatch.chdir(tmp_path)
    assert find_channel("acme", pipeline, tmp_path) == named
    assert find_channel("channels/acme.channel.yaml", pipeline, tmp_path).samefile(named)
    assert find_channel("b.channel.yaml", pipeline, tmp_path) == beside
    with pytest.raises(PipelineErrors) as caught:
        find_channel("acmee", pipeline, tmp_path)
    assert caught.value.diagnostics[0].help == "channels here: acme"


def test_a_channel_is_found_by_the_name_in_its_file(tmp_path: Path) -> None:
    """`channel.name` can be given to --channel."""
    pipeline, channels = tmp_path / "p.yaml", tmp_path / "channels"
    channels.mkdir()
    files = {name: channels / f"{name}.channel.yaml" for name in ("a", "b", "c", "eu")}
    for file, name in zip(files.values(), ("acme", "eu", "two", "us"), strict=True):
        file.write_text(f"channel: {{name: {name}, target: p.yaml}}\n")
    (channels / "broken.channel.yaml").write_text("channel: [\n")
    assert find_channel("acme", pipeline, tmp_path) == files["a"]
    assert find_channel("eu", pipeline, tmp_path) == files["eu"]
    files["a"].write_text("channel: {name: two, target: p.yaml}\n")
    with pytest.raises(PipelineErrors) as caught:
        find_channel("two", pipeline, tmp_path)
    assert caught.value.diagnostics[0].message == f"several channel files are called 'two': {files['a']}, {files['c']}"
