"""The pictures of the pages, drawn from runs of the pipelines in `docs/start/`: `docs/pictures/`."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import errata
from errata.core.options import Correction
from errata.scaffold.example import make_project
from tests.site.drawing import LINE, PADDING, Box, Drawing, Line
from tests.site.pages import DOCS, titled

FOLDER = DOCS / "pictures"
START = DOCS / "start"
GAP = 44
TONES = {"+A": "add", "-R": "gone", "+C": "mend", "-C": "mend"}


def pictures(folder: Path) -> Iterator[tuple[Path, str]]:
    """Yield each picture with its text.

    Args:
        folder: an empty folder for the pipelines that are run
    """
    files = [*titled(START / "first-pipeline.md"), *titled(START / "first-correction.md")]
    shop = laid_out(folder, files[:2])
    shop.run()
    first = {name: list(shop.show(name)) for name in shop.node_names}
    laid_out(folder, files[2:3])
    shop.run()
    yield FOLDER / "pipeline.svg", chain("A pipeline of four nodes with their rows", shop, {name: live(rows) for name, rows in first.items()})
    yield FOLDER / "correction.svg", chain("What a correction changes in each node", shop, {name: changes(shop.diff(name, 1, 2)) for name in shop.node_names})
    yield FOLDER / "epochs.svg", epochs(shop, "customers")
    example = corrected_example(folder / "example")
    yield FOLDER / "three-commands.svg", chain("What the new amount changes in each node", example, {name: changes(example.diff(name, 1, 2)) for name in example.node_names})
    yield FOLDER / "start.svg", journey()
    sales = laid_out(folder, titled(START / "first-rollback.md")[:2])
    sales.run()
    yield FOLDER / "rollback.svg", groups(folder / "sales", sales)
    yield FOLDER / "architecture.svg", architecture()
    yield FOLDER / "parts.svg", parts()


def laid_out(folder: Path, files: Sequence[tuple[str, str]]) -> errata.Pipeline:
    """Write files of a page, and return the pipeline that is there then."""
    for name, text in files:
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return errata.load(folder / Path(files[0][0]).parent / "pipeline.yaml")


def corrected_example(folder: Path) -> errata.Pipeline:
    """Return the example of `errata init`, after its first run and the correction of the page of three commands."""
    list(make_project(folder))
    pipeline = errata.load(folder / "pipeline.yaml")
    pipeline.run()
    pipeline.correct(Correction("orders", {"order_id": "1003"}, {"amount": "45.25"}, "wrong price"))
    return pipeline


def journey() -> str:
    """Draw the pages of the start in their order, with what a reader has after each."""
    pages = (
        ("Is it for you?", "fits and limits"), ("Install", "a command: errata"), ("Three commands", "a correction seen"),
        ("First pipeline", "sales, summed up"), ("First correction", "what changed, and why"), ("First rollback", "a whole group out"),
    )  # fmt: skip
    drawing, boxes = Drawing("The pages in their order, and what you have after each"), []
    for number, (page, *gained) in enumerate(pages):
        row, column = divmod(number, 3)
        top = PADDING if row == 0 else boxes[0].bottom + GAP
        boxes.append(drawing.box(PADDING + column * (190 + GAP), top, [Line(f"{number + 1} {page}", "name"), *(Line(text, "quiet") for text in gained)], 190))
    for number in range(1, len(boxes)):
        start, end = boxes[number - 1], boxes[number]
        if number == 3:
            back(drawing, start, end)
        else:
            drawing.arrow(start, end)
    return drawing.svg()


def kinds(pipeline: errata.Pipeline) -> Mapping[str, str]:
    """Return the type of each node."""
    return {row["node"]: row["type"] for row in pipeline.plan_next()}


def chain(title: str, pipeline: errata.Pipeline, lines: Mapping[str, Sequence[Line]]) -> str:
    """Draw nodes that follow each other, two in a row, with lines of text in each."""
    drawing, types = Drawing(title), kinds(pipeline)
    texts = [[Line(name, "name"), Line(types[name], "quiet"), *lines[name]] for name in pipeline.node_names]
    wide = max(Box(0, 0, text).wide for text in texts)
    boxes: list[Box] = []
    for number, text in enumerate(texts):
        row, column = divmod(number, 2)
        top = PADDING if row == 0 else max(box.bottom for box in boxes[: 2 * row]) + GAP
        boxes.append(drawing.box(PADDING + column * (wide + GAP), top, text, wide))
    for number in range(1, len(boxes)):
        start, end = boxes[number - 1], boxes[number]
        if number % 2:
            drawing.arrow(start, end)
        else:
            back(drawing, start, end)
    return drawing.svg()


def back(drawing: Drawing, start: Box, end: Box) -> None:
    """Draw an arrow from a box to the one at the begin of the next row."""
    x, y, between = start.x + start.wide / 2, end.y, end.y - GAP / 2
    target = end.x + end.wide / 2
    drawing.parts.append(f'<path class="edge" d="M{x:g},{start.bottom:g} V{between:g} H{target:g} V{y - 7:g}"/><path class="head" d="M{target:g},{y:g} l-4.5,-9 h9 z"/>')


def live(rows: Sequence[Mapping[str, Any]]) -> list[Line]:
    """Return live rows as lines."""
    return [Line(" ".join(map(shown, row.values()))) for row in rows]


def shown(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else "" if value is None else str(value)


def changes(rows: Sequence[Mapping[str, Any]]) -> list[Line]:
    """Return the net changes of a node as lines: the row, or each changed column of a corrected one with both values."""
    return [Line(text, TONES[row["op"]]) for row in rows for text in one_change(row["op"], row["before"], row["after"])]


def one_change(op: str, before: Mapping[str, Any] | None, after: Mapping[str, Any] | None) -> Iterator[str]:
    if before is None or after is None:
        yield " ".join([op, *map(shown, (before or after or {}).values())])
        return
    name = shown(next(iter(after.values())))
    changed = [f"{column} {shown(before[column])} → {shown(after[column])}" for column in after if before[column] != after[column]]
    yield f"{op} {name}: {changed[0]}"
    yield from (" " * len(f"{op} {name}: ") + text for text in changed[1:])


def epochs(pipeline: errata.Pipeline, node: str) -> str:
    """Draw the op rows of a node in each epoch, and its live rows after it."""
    drawing, left = Drawing(f"The changelog of {node}, and its live rows"), float(PADDING)
    boxes = []
    for epoch in (1, 2):
        ops = [Line(f"{row['op']} " + " ".join(map(shown, row["data"].values())), TONES[row["op"]]) for row in pipeline.log(node) if row["epoch"] == epoch]
        boxes.append(([Line(f"epoch {epoch}: op rows", "name"), *ops], [Line(f"live after epoch {epoch}", "name"), *live(list(pipeline.show(node, at=epoch)))]))
    tall = max(Box(0, 0, ops).high for ops, _ in boxes)
    for ops, rows in boxes:
        upper = drawing.box(left, PADDING, ops, max(Box(0, 0, ops).wide, Box(0, 0, rows).wide))
        lower = drawing.box(left, PADDING + tall + GAP, rows, upper.wide)
        drawing.down(upper, lower)
        left = upper.right + GAP
    return drawing.svg()


def groups(folder: Path, pipeline: errata.Pipeline) -> str:
    """Draw the groups of the sales, and where their records go."""
    drawing = Drawing("A record that fails takes its group with it")
    failed = {(row["file"], row["row"]): row["category"] for row in pipeline.dlq_list()}
    with (folder / "lines.csv").open(encoding="utf-8", newline="") as file:
        records = list(csv.DictReader(file))
    by_sale: dict[str, list[Line]] = {}
    out: set[str] = set()
    for number, record in enumerate(records, 1):
        category = failed.get(("lines.csv", number))
        tone = "" if category is None else "mend" if category == "correlated" else "gone"
        note = {"": "", "mend": "  collateral", "gone": "  trigger"}[tone]
        by_sale.setdefault(record["sale"], []).append(Line(f"{record['product']:6} {record['pieces']:>3} x {record['price']}{note}", tone))
        if category is not None:
            out.add(record["sale"])
    wide = max(Box(0, 0, lines).wide for lines in by_sale.values())
    top, boxes = float(PADDING), {}
    for sale, lines in sorted(by_sale.items(), key=lambda item: item[0] in out):
        boxes[sale] = drawing.box(PADDING, top, [Line(f"sale {sale}", "name"), *lines], wide)
        top = boxes[sale].bottom + LINE
    left = PADDING + wide + 2 * GAP
    shipped = [" ".join([row["sale"], row["product"]]) for row in pipeline.show("shipped")]
    results = drawing.box(left, PADDING, [Line("outputs and totals", "name"), *(Line(text, "add") for text in shipped)], 200)
    queue = drawing.box(left, max(results.bottom + GAP, boxes[max(out)].y), [Line("dead letter queue", "name"), *(Line(f"{row['sale']} {row['product']}", "gone") for row in pipeline.dlq_list())], 200)
    for sale, box in boxes.items():
        drawing.arrow(box, queue if sale in out else results)
    return drawing.svg()


def architecture() -> str:
    """Draw the way of a run through the packages."""
    drawing = Drawing("From a pipeline file and input files to tables, outputs and answers")

    def part(x: float, y: float, *lines: str) -> Box:
        return drawing.box(x, y, [Line(lines[0], "name"), *(Line(line, "quiet") for line in lines[1:])], 190)

    left, middle, right = PADDING, PADDING + 190 + GAP, PADDING + 2 * (190 + GAP)
    yaml = part(left, PADDING, "pipeline.yaml", "errata/project reads", "and expands it")
    plan = part(middle, PADDING, "plan", "errata/plan binds", "nodes, lists steps")
    epoch = part(right, PADDING, "epoch", "errata/execution", "runs the steps")
    second = epoch.bottom + GAP
    files = part(left, second, "input files", "and databases")
    source = part(middle, second, "source", "files to op rows")
    nodes = part(right, second, "linear, keyed,", "accumulating nodes:", "deltas to deltas")
    third = nodes.bottom + GAP
    tables = part(left, third, "tables", "changelogs, state,", "one ledger row", "for each epoch")
    inspect = part(middle, third, "errata/inspect", "log, show, why,", "diff, verify")
    outputs = part(right, third, "outputs", "files and tables,", "staged, then", "renamed")
    for start, end in ((yaml, plan), (plan, epoch), (files, source), (source, nodes), (tables, inspect)):
        drawing.arrow(start, end)
    drawing.down(epoch, nodes)
    drawing.down(nodes, outputs)
    between = third - GAP / 2
    x, y = nodes.x + 40, tables.x + tables.wide / 2
    drawing.parts.append(f'<path class="edge" d="M{x:g},{nodes.bottom:g} V{between:g} H{y:g} V{tables.y - 7:g}"/><path class="head" d="M{y:g},{tables.y:g} l-4.5,-9 h9 z"/>')
    return drawing.svg()


def parts() -> str:
    """Draw what is on a machine: the command with its engine, and the files around it."""
    drawing = Drawing("The command reads a pipeline and its input, and writes the state and outputs")

    def part(x: float, y: float, *lines: str) -> Box:
        return drawing.box(x, y, [Line(lines[0], "name"), *(Line(line, "quiet") for line in lines[1:])], 180)

    left, middle, right = PADDING, PADDING + 180 + GAP, PADDING + 2 * (180 + GAP)
    pipeline = part(left, PADDING, "pipeline.yaml", "errata.toml")
    data = part(left, pipeline.bottom + LINE, "input", "files, tables,", "services")
    command = part(middle, PADDING + LINE, "errata", "one process, with", "the engine Sail")
    part_of_spark = part(middle, command.bottom + GAP, "Spark", "only if you want it:", "Java, a cluster")
    state = part(right, PADDING, ".errata/", "the state")
    output = part(right, state.bottom + LINE, "output", "files, tables")
    for start, end in ((pipeline, command), (data, command), (command, state), (command, output)):
        drawing.arrow(start, end)
    drawing.down(command, part_of_spark)
    return drawing.svg()
