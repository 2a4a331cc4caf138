"""A chain of transforms that keep no tables: its plan is as long as the chain, though each of them may reject records."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.pipelines import Folder, command, standing_in

LENGTH = 9
ROWS = 12_000
"""More than are worked on by way of the driver."""
SOURCE = """
pipeline: {name: chain}
changelog: {persist: boundaries}
error_handling: {strategy: continue}
nodes:
  - {type: source, name: s, config: {name: s, type: csv, glob: in/*.csv, schema: [{name: id, type: int}, {name: v, type: int}]}}
"""
TRANSFORM = """  - {{type: transform, name: t{at}, input: {above}, config: {{cxl: "emit w{at} = 100 / (v - {at})"}}}}
"""
END = """  - {{type: aggregate, name: sums, input: {above}, config: {{group_by: [v], cxl: "emit rows = count(*)\\nemit last = sum(w{last})"}}}}
  - {{type: output, name: groups, input: sums, config: {{name: groups, type: csv, path: groups.csv}}}}
"""


def value_of(number: int, more: int = 0) -> int:
    return (number + more) % 50


def records(numbers: range, more: int = 0) -> str:
    return "id,v\n" + "".join(f"{number},{value_of(number, more)}\n" for number in numbers)


@pytest.mark.parametrize("engine", ["sail", pytest.param("spark", marks=pytest.mark.deep)])
def test_a_long_chain_is_computed_and_computed_again(tmp_path: Path, engine: str) -> None:
    """Each transform divides by `v` less its own number: records whose `v` is one of these fail. At last half of the values are others."""
    folder = Folder(tmp_path)
    above = ["s", *(f"t{at}" for at in range(1, LENGTH + 1))]
    text = SOURCE + "".join(TRANSFORM.format(at=at, above=above[at - 1]) for at in range(1, LENGTH + 1)) + END.format(above=above[-1], last=LENGTH)
    folder.write("pipeline.yaml", text)
    folder.write("in/a.csv", records(range(ROWS)))
    second = range(ROWS, 2 * ROWS + 500)
    for numbers, name, more in ((range(ROWS), "in/a.csv", 0), (second, "in/b.csv", 0), (second, "in/b.csv", 7)):
        folder.write(name, records(numbers, more))
        with standing_in(folder.path):
            assert command("run", "pipeline.yaml", "--quiet", "--engine", engine, "--max-retract-share", "1")[0] == 2
        lines = (tmp_path / "groups.csv").read_text().splitlines()[1:]
        counted = {int(line.split(",")[0]): int(line.split(",")[1]) for line in lines}
        values = [*map(value_of, range(ROWS)), *(value_of(number, more) for number in second if numbers is second)]
        assert counted == {value: values.count(value) for value in range(50) if not 1 <= value <= LENGTH}
