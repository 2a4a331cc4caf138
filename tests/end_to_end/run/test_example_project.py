"""The project that `errata init` makes: the commands of its README work, and lead to the first correction."""

import re
import shlex
from pathlib import Path

from errata.cli import main
from tests.support.event_streams import checked


def test_the_three_commands_of_the_readme(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["init"]) == 0
    readme = Path("README.md").read_text()
    commands = re.findall(r"(?m)^errata (.+)$", readme.split("```sh")[1].split("```")[0])
    assert len(commands) == 3
    assert [main([*shlex.split(words), "-q"]) for words in commands] == [2, 2, 0]
    output = capsys.readouterr().out
    assert "total: 162.75 → 165.75" in output
    assert "wrong price" in output
    for words in re.findall(r"`errata ([^`]+)`", readme)[1:]:
        assert main(shlex.split(words)) == 0
    assert "cannot read 'not known' as float" in capsys.readouterr().out


def test_the_end_of_a_run_tells_what_changed_in_each_output(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["init", "-q"]) == 0
    assert main(["run", "pipeline.yaml"]) == 2
    assert capsys.readouterr().err.splitlines()[-3] == "report: 4 new"
    orders = Path("data/orders.csv")
    orders.write_text(orders.read_text().replace("120.50", "99.50").replace("1005,apac", "1005,us"))
    assert main(["run", "pipeline.yaml", "--events", "jsonl"]) == 2
    output, errors = capsys.readouterr()
    assert errors.splitlines()[-3] == "report: 1 corrected, 1 gone, 1 new; 2 of 4 delivered rows differ"
    ended = checked(output, 2, "pipeline.yaml")[-1]
    assert ended["outputs"] == [{"node": "report", "added": 1, "removed": 1, "corrected": 1, "delivered": 4}]
    assert main(["run", "pipeline.yaml"]) == 2
    assert "report" not in capsys.readouterr().err
