"""Each command: its calls of the pipeline, its output and its exit code."""

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given
from hypothesis import strategies as st

from errata.cli import main
from errata.core.diagnostics import Diagnostic, PipelineErrors
from errata.core.events import RunResult
from errata.core.failures import Busy, Stopped, StorageFailed
from errata.core.options import Correction, LetterChoice, LetterDecision, LogFilter, Restatement
from tests.invariants.sales import HEADER, pipeline
from tests.support.examples import examples
from tests.support.pipelines import Folder

COMMANDS = [
    "booked",
    "check",
    "compact",
    "correct",
    "corrections",
    "diff",
    "dlq",
    "doctor",
    "erase",
    "expectations",
    "explain",
    "export",
    "init",
    "log",
    "lsp",
    "metrics",
    "notebook",
    "plan",
    "report",
    "restate",
    "revert",
    "run",
    "schema",
    "show",
    "status",
    "test",
    "ui",
    "verify",
    "why",
]


def test_every_command_of_the_contract_is_there(call) -> None:
    code, output, _ = call("--help")
    assert code == 0
    assert [line.split()[0] for line in output.partition("Commands:")[2].splitlines() if line.strip()] == COMMANDS


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_and_the_common_options(command: str, call) -> None:
    code, output, errors = call(f"{'metrics collect' if command == 'metrics' else command} --help")
    assert (code, errors) == (0, "")
    assert "--quiet" in output
    assert "--no-color" in output


@pytest.mark.parametrize("words", ["frobnicate", "run p.yaml --no-such", "run", "log p.yaml --format xml", "run p.yaml -n 0", "run p.yaml --memory-limit much",
                                   "run p.yaml --full-refresh --ephemeral", "run p.yaml --dry-run-output f", "run p.yaml --remote sc://h --engine sail", "explain",
                                   "explain p.yaml --field nodot", "correct p.yaml orders --key id=1 --reason x", "correct p.yaml orders --key id=1 --reason x --set a=1 --retract",
                                   "why p.yaml totals region", "why p.yaml totals a=1 a=2", "dlq p.yaml retry", "dlq p.yaml history g", "dlq p.yaml waive x", "dlq p.yaml waive --reason r", "dlq p.yaml assign x", "dlq p.yaml list --to ana", "dlq p.yaml retry g h", "dlq p.yaml retry g --older-than 1d", "dlq p.yaml waive x --all --reason r", "dlq p.yaml list --reopen", "dlq p.yaml retry g --author ana", "log p.yaml --epoch 2", "explain --code NOPE",
                                   "show p.yaml nowhere", "run p.yaml --var limit"])  # fmt: skip
def test_wrong_usage(words: str, call, application) -> None:
    code, output, errors = call(words)
    assert (code, output) == (64, "")
    assert errors.endswith("Nothing was changed.\n")


def test_a_misspelt_command_has_a_hint(call) -> None:
    assert "did you mean 'status'?" in call("statsu p.yaml")[2]


def test_run_hands_its_options_on(call, application) -> None:
    code, output, errors = call(
        "run p.yaml --batch-id b1 --error-threshold 5 --memory-limit 2G --threads 3 --engine sail --force --wait --max-retract-share 0.9 "
        "--metrics-spool-dir spool --var pipeline.cutoff=10 --var vars.a=b=c --channel acme --base-dir data --rules-path rules --env prod --state s3://b/x --allow-absolute-paths"
    )
    (_, (path, settings)), (_, options) = application.calls
    assert (code, output, path) == (0, "", "p.yaml")
    assert settings == {
        "channel": Path("acme"), "variables": {"pipeline.cutoff": "10", "vars.a": "b=c"}, "base_dir": Path("data"), "rules_path": Path("rules"),
        "environment": "prod", "state": "s3://b/x", "allow_absolute_paths": True,
    }  # fmt: skip
    assert (options.batch_id, options.error_threshold, options.force, options.wait, options.max_retract_share) == ("b1", 5, True, True, 0.9)
    assert (options.engine.engine, options.engine.memory_limit, options.engine.threads) == ("sail", 2 * 1024**3, 3)
    assert options.metrics_spool_dir == Path("spool")
    assert errors.splitlines()[-1] == "Epoch 4: +A 2, -R 1 (0.5 s)"


def test_a_preview_implies_a_dry_run_and_is_the_answer(call, application) -> None:
    application.result = RunResult(0, preview="id,k\n1,2\n")
    code, output, errors = call("run p.yaml -n 3")
    options = application.calls[-1][1]
    assert (code, output, options.dry_run, options.preview) == (0, "id,k\n1,2\n", True, 3)
    assert "nothing was changed" in errors


@pytest.mark.parametrize(
    ("words", "form"),
    [
        ("run p.yaml --explain", "text"),
        ("run --explain p.yaml", "text"),
        ("run p.yaml --explain=dot", "dot"),
        ("run p.yaml --explain json", "json"),
    ],
)
def test_explain_of_run(words: str, form: str, call, application) -> None:
    assert call(words)[:2] == (0, f"explain ('{form}',)\n")
    assert application.calls[0][1][0] == "p.yaml"


def test_progress_and_notes_go_to_standard_error_and_quiet_silences_them(call, application) -> None:
    errors = call("run p.yaml")[2]
    assert "totals" in errors
    assert "report" not in errors
    assert "report" in call("run p.yaml -v")[2]
    assert call("run p.yaml -q") == (0, "", "")
    assert call("run p.yaml --log-level warn") == (0, "", "")


@pytest.mark.parametrize(("error", "code", "says", "next_step"), [
    (Stopped("threshold exceeded"), 3, "threshold exceeded", "; repair the cause, then run again"),
    (Stopped("a bad record", file="a.csv"), 3, "a bad record", "; fix a.csv, then run again"),
    (StorageFailed("disk full"), 4, "disk full", "; repair the cause, then run again"),
    (Busy.held_by("host 7"), 6, "host 7", "; run again to continue"),
    (FileNotFoundError(2, "No such file", "x.csv"), 4, "x.csv: No such file", "; fix x.csv, then run again"),
    (ConnectionResetError(104, "Connection reset by peer"), 4, "Connection reset by peer", "; run again to continue"),
    (KeyError("oops"), 70, "a defect of Errata: KeyError", ""),
    (KeyboardInterrupt(), 130, "interrupted", "; run again to continue"),
])  # fmt: skip
def test_a_failing_run_names_the_last_epoch_and_the_next_step(error: BaseException, code: int, says: str, next_step: str, request) -> None:
    application, call = request.getfixturevalue("failing")(error), request.getfixturevalue("call")
    ended, output, errors = call("run p.yaml")
    assert (ended, output) == (code, "")
    assert says in errors
    assert errors.endswith(f"\nEpoch 3 stands{next_step}.\n")
    application.epoch = None
    assert call("run p.yaml")[2].endswith("Nothing was changed.\n")


def test_a_defect_shows_its_trace_only_when_asked(call, failing) -> None:
    failing(ZeroDivisionError("x"))
    assert "Traceback" not in call("run p.yaml")[2]
    assert "Traceback" in call("run p.yaml -v")[2]


def test_a_project_that_does_not_load(call, application) -> None:
    application.fails = PipelineErrors([Diagnostic("E004", "there is no node 'x'", file="p.yaml", line=3, column=4)])
    code, output, errors = call("run p.yaml")
    assert (code, output) == (1, "")
    assert errors.startswith("error[E004]: there is no node 'x'")
    assert errors.endswith("\n1 error\n\nNothing was changed.\n")
    code, output, _ = call("check p.yaml --format jsonl")
    assert (code, json.loads(output)["line"]) == (1, 3)


def test_exit_code_2_is_no_failure(call, application) -> None:
    application.result = RunResult(2, epoch=4, rejected=7, counts={"a": {"+A": 1}}, committed=True)
    code, _, errors = call("run p.yaml")
    assert code == 2
    assert "7 rejected" in errors


def test_a_run_that_was_stopped_by_its_result(call, application) -> None:
    application.result = RunResult(3, epoch=3, message="node 'totals': division by zero")
    code, _, errors = call("run p.yaml")
    assert code == 3
    assert "error: node 'totals': division by zero\nEpoch 3 stands" in errors


def test_warnings_are_printed_once(call, application) -> None:
    application.diagnostics = (Diagnostic("W104", "another target", "warning"),)
    code, _, errors = call("status p.yaml")
    assert code == 0
    assert errors.count("W104]") == 1


def test_status_in_its_forms(call, application) -> None:
    assert json.loads(call("status p.yaml --format json")[1])["per_source_rollback_cursors"] == {"orders": 41}
    text = call("status p.yaml")[1]
    assert text.startswith("orders: epoch 3, 1 record rejected\n")
    assert text.endswith("\n\nsuppressed groups: A (orders, 2 records), B (orders, 2 records)\n\nthe next run reads: orders (files: 1 new)\n")
    assert call("status p.yaml --format csv")[1].splitlines()[1] == "source,orders,41,40,1,2,,"


def test_log_filters(call, application) -> None:
    call("log p.yaml totals --epoch 2 --op -R --cause rollback --limit 3 --form flink --format jsonl")
    assert application.calls[-1] == ("log", ("totals", LogFilter(epoch=2, op="-R", cause="rollback", limit=3, form="flink")))
    call("log p.yaml")
    assert application.calls[-1] == ("runs", ())


def _on_a_terminal(monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    monkeypatch.setattr("errata.rendering.terminal.is_terminal", lambda stream: True)
    monkeypatch.setenv("COLUMNS", str(columns))


def test_a_table_fits_the_terminal_and_is_whole_where_there_is_none(call, application, monkeypatch) -> None:
    long = "x" * 400
    application.rows = [{"id": 1, "text": long}]
    tables = [f"{name} p.yaml totals{words}" for name, words in (("show", ""), ("log", ""), ("diff", " --from 1 --to 2 --no-color"))]
    assert all(long in call(words)[1] for words in tables)
    _on_a_terminal(monkeypatch, 90)
    assert {max(map(len, call(words)[1].splitlines())) for words in tables} == {90}


def test_columns_that_do_not_fit_are_named_and_shown_by_wide(call, application, monkeypatch) -> None:
    application.rows = [{f"column_{number}": "x" * 20 for number in range(9)}]
    _on_a_terminal(monkeypatch, 60)
    code, output, errors = call("show p.yaml totals")
    assert (code, max(map(len, output.splitlines()))) == (0, 60)
    assert errors == "--wide shows 5 more columns: column_4, column_5, column_6, …\n"
    code, output, errors = call("show p.yaml totals --wide")
    assert (code, errors, output.splitlines()[0].split()[-1]) == (0, "", "column_8")


def test_dlq_shows_the_record_and_its_reason_where_not_all_fits(call, application, monkeypatch) -> None:
    application.rows = [{"source": "orders", "file": "orders.csv", "row": 4, "category": "type_coercion_failure", "detail": "column 'amount': cannot read 'not known' as float", "amount": "x"}]
    assert call("dlq p.yaml")[1].split()[:2] == ["source", "file"]
    _on_a_terminal(monkeypatch, 70)
    lines = call("dlq p.yaml")[1].splitlines()
    assert lines[0].split() == ["file", "row", "detail"]
    assert lines[2] == "orders.csv    4  column 'amount': cannot read 'not known' as float"
    _on_a_terminal(monkeypatch, 40)
    assert call("dlq p.yaml")[1].splitlines()[2] == "orders.csv    4  column 'amount': canno…"


@pytest.mark.parametrize(("words", "message"), [
    ("dlq p.yaml", "No record is rejected."), ("dlq p.yaml --source orders", "No such entry is in the queue."), ("dlq p.yaml history", "Nothing was decided yet."),
    ("diff p.yaml totals --from 1 --to 2", "No row differs."),
])  # fmt: skip
def test_people_read_a_sentence_in_place_of_a_table_without_rows(call, application, words, message) -> None:
    application.rows = []
    assert call(words) == (0, "", f"{message}\n")
    assert call(f"{words} --quiet") == (0, "", "")
    assert call(f"{words} --format json")[1] == "[]\n"


def test_a_change_is_one_line_with_both_values(call, application, monkeypatch) -> None:
    _on_a_terminal(monkeypatch, 60)
    application.rows = [{"id": 7, "amount": 5, "note": None}]
    assert call("diff p.yaml totals --from 1 --to 2 --no-color")[1].splitlines()[2] == "+A  id: 7, amount: 5, note: null"


@pytest.mark.parametrize("words", ["", "metrics"])
def test_without_a_command_there_is_help(call, words) -> None:
    code, output, errors = call(words)
    assert (code, output) == (64, "")
    assert errors.startswith("Usage: errata")
    assert "\nCommands:\n" in errors

@pytest.mark.parametrize(("words", "environment", "colored"), [
    ("", {}, True), ("", {"NO_COLOR": "1"}, False), (" --no-color", {}, False), (" --color never", {}, False), (" --color always", {"NO_COLOR": "1"}, True), ("", {"ERRATA_COLOR": "never"}, False),
])  # fmt: skip
def test_ops_are_coloured_on_a_terminal(call, application, monkeypatch, words, environment, colored) -> None:  # noqa: PLR0917 - what it needs
    application.rows = [{"op": "+A", "data": "\x1b[31mx"}]
    _on_a_terminal(monkeypatch, 90)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    output = call(f"log p.yaml totals{words}")[1]
    assert ("\x1b[32m+A\x1b[0m" in output) == colored
    assert "\x1b[31mx" not in output


def test_colours_where_there_is_no_terminal(call, application) -> None:
    application.rows = [{"op": "-R"}]
    assert "\x1b" not in call("log p.yaml totals")[1]
    assert "\x1b[31m-R\x1b[0m" in call("log p.yaml totals --color always")[1]


def test_why_cuts_no_field_of_a_record(call, application, monkeypatch) -> None:
    application.rows = [{"source": "orders", "data": {"text": "x" * 400, "last": "unique"}}]
    _on_a_terminal(monkeypatch, 90)
    assert '"last":"unique"}' in call("why p.yaml totals id=1")[1]


def test_runs_are_printed_in_short(call, application) -> None:
    head, _, *lines = call("log p.yaml")[1].splitlines()
    assert head.split() == ["epoch", "started", "seconds", "execution_id", "exit_code", "counts", "kind", "reason"]
    assert lines[0].split()[:4] == ["1", "2026-03-01", "09:30:00", "1"]
    assert "node_0 +A 1 -R 1; " in lines[0]
    assert "node_8 +A 1 -R 1" in lines[0]
    assert lines[1].split()[-3:] == ["correct", "a", "typo"]
    assert len(json.loads(call("log p.yaml --format json")[1])[0]["counts"]) == 9


def test_other_calls(call, application) -> None:
    for words, expected in [
        ("show p.yaml totals --at 2", ("show", ("totals", 2))),
        ("diff p.yaml totals --from 1 --to 3", ("diff", ("totals", 1, 3))),
        ("why p.yaml totals region=EU id=4", ("why", ("totals", {"region": "EU", "id": "4"}))),
        ("restate p.yaml totals --by month,region --field n --from 1", ("restate", ("totals", Restatement(("month", "region"), ("n",), 1)))),
        ("dlq p.yaml", ("dlq_list", ())),
        ("dlq p.yaml groups", ("dlq_groups", ())),
        ("dlq p.yaml --triage", ("dlq_triage", (LetterChoice(),))),
        ("dlq p.yaml --older-than 30d --not-waived", ("dlq_triage", (LetterChoice(older_than="30d", waived=False),))),
        ("dlq p.yaml groups A17 --assigned ana", ("dlq_triage_groups", (LetterChoice(("A17",), assigned="ana"),))),
        ("dlq p.yaml history", ("dlq_history", ())),
        ("plan p.yaml", ("outlook", ())),
        ("explain p.yaml --field scale.factor", ("explain_field", ("scale", "factor"))),
    ]:
        assert call(words)[0] == 0
        assert application.calls[-1] == expected


def test_show_ends_at_its_limit(call) -> None:
    every = call("show p.yaml totals --format jsonl")[1].splitlines()
    assert call("show p.yaml totals --format jsonl --limit 1")[1].splitlines() == every[:1]
    assert call("show p.yaml totals --limit 0")[0] == 64


def test_decisions_about_dead_letters(call, application) -> None:
    for words, choice, decision in [
        ("waive 019ac1c4 S2 --reason test --author ben", LetterChoice(("019ac1c4", "S2")), LetterDecision("waive", "test", "ben")),
        ("unwaive --all", LetterChoice(), LetterDecision("unwaive")),
        ("assign --category validation_failure --to ana", LetterChoice(category="validation_failure"), LetterDecision("assign", assignee="ana")),
        ("assign --assigned ana --to=", LetterChoice(assigned="ana"), LetterDecision("assign")),
    ]:
        call(f"dlq p.yaml {words}")
        name, (chosen, decided, _) = application.calls[-1]
        assert (name, chosen, decided) == ("dlq_decide", choice, decision)


def test_a_retry_has_a_reason_and_may_reopen_periods(call, application) -> None:
    call("dlq p.yaml retry A17 --reason whole --author ben --reopen")
    name, (group, options, reason, author) = application.calls[-1]
    assert (name, group, reason, author, options.reopen) == ("dlq_retry", "A17", "whole", "ben", True)


def test_correct(call, application) -> None:
    code, output, errors = call("correct p.yaml orders --key id=1 --set amount=5 --reason typo --dry-run --format jsonl")
    assert errors == "Nothing was changed.\n"
    name, (correction, options) = application.calls[-1]
    assert (code, name) == (0, "correct")
    assert correction == Correction("orders", {"id": "1"}, {"amount": "5"}, "typo")
    assert options.dry_run
    assert json.loads(output)["op"] == "-C"


def test_verify_with_and_without_a_violation(call, application) -> None:
    assert call("verify p.yaml --recompute")[0] == 0
    code, output, errors = call("verify p.yaml")
    assert code == 5
    assert "violation" in output
    assert "1 violation in 1 check" in errors


def test_report_is_written_whole(call, application, tmp_path: Path) -> None:
    assert call("report p.yaml -o out/page.html")[0] == 0
    assert (tmp_path / "out/page.html").read_text() == "<html></html>"


@pytest.mark.parametrize("prefix", ["ERRATA", "CLINKER"])
def test_options_from_the_environment(prefix: str, call, application, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"BATCH_ID": "nightly", "ENGINE": "sail", "STATE": "elsewhere", "FORCE": "1", "ENV": "prod", "QUIET": "1"}.items():
        monkeypatch.setenv(f"{prefix}_{name}", value)
    assert call("run p.yaml") == (0, "", "")
    (_, (_, settings)), (_, options) = application.calls
    assert (settings["state"], settings["environment"], options.batch_id, options.engine.engine, options.force) == (
        "elsewhere",
        "prod",
        "nightly",
        "sail",
        True,
    )


def test_the_command_line_beats_the_environment(call, application, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ERRATA_BATCH_ID", "nightly")
    call("run p.yaml --batch-id mine")
    assert application.calls[-1][1].batch_id == "mine"


def test_help_is_light() -> None:
    program = "import sys; from errata.cli import main; main(['--help']); print([m for m in ('pyspark', 'polars', 'pyarrow', 'deltalake', 'pydantic', 'rich', 'cxl') if m in sys.modules], file=sys.stderr)"
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=Path(__file__).parents[3])
    assert answer.stderr.strip() == "[]"


LIBRARIES = {"pyspark", "pysail", "polars", "pyarrow", "numpy", "pandas"}
READING = {"operators.source.request", "operators.source.diff.by_key", "storage.engines.registry", "errata.execution.node_runner"}
NOT_IN_THE_PIPELINE = {"operators.transform.distinct", "operators.aggregate.time_window.operator", "errata.project.compositions.call", "errata.telemetry.openlineage", "errata.rollback.dlq_file"}


@pytest.mark.parametrize(("command", "unneeded"), [("check", {"deltalake", "storage.delta.changelog_table"}), ("run", set())])
def test_what_needs_no_engine_loads_none(command: str, unneeded: set[str], tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", pipeline("snapshot"))
    folder.write_csv("data/a.csv", HEADER, [{"id": 1, "region": "EU", "amount": 1.5, "parts": 2}])
    folder.run()
    program = "import sys; from errata.cli import main; code = main(sys.argv[1:]); print(*sys.modules, file=sys.stderr); sys.exit(code)"
    words = [sys.executable, "-c", program, command, str(tmp_path / "pipeline.yaml")]
    answer = subprocess.run(words, capture_output=True, text=True, check=True, cwd=Path(__file__).parents[3])
    loaded = {name for module in answer.stderr.split() for name in (module, module.split(".")[0])}
    assert all(map(find_spec, READING | NOT_IN_THE_PIPELINE | unneeded))  # else the next line says nothing
    assert loaded & (LIBRARIES | READING | NOT_IN_THE_PIPELINE | unneeded) == set()


def test_the_engine_starts_while_the_sources_are_read(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", pipeline("snapshot"))
    folder.write_csv("data/a.csv", HEADER, [{"id": 1, "region": "EU", "amount": 1.5, "parts": 2}])
    program = """
import sys, errata
from errata.core.options import EngineOptions, RunOptions
from storage.engines import EngineChoice, engine
def hear(event):
    print(event.kind, event.node, engine(EngineChoice("sail")).started)
errata.load(sys.argv[1]).run(RunOptions(engine=EngineOptions("sail"), listener=hear))
"""
    command = [sys.executable, "-c", program, str(tmp_path / "pipeline.yaml")]
    answer = subprocess.run(command, capture_output=True, text=True, check=True, cwd=Path(__file__).parents[3])
    first = next(line for line in answer.stdout.splitlines() if line.startswith("begin ") and not line.startswith("begin  "))
    assert first.endswith(" True")


def test_a_reader_that_has_enough_is_no_failure(application, monkeypatch: pytest.MonkeyPatch) -> None:
    from errata.cli import main

    class Closed:
        closed = False

        def isatty(self) -> bool:
            return False

        def write(self, text: str) -> int:
            raise BrokenPipeError

        def fileno(self) -> int:
            raise OSError

    monkeypatch.setattr(sys, "stdout", Closed())
    assert main(["show", "p.yaml", "totals"]) == 0


WORDS = st.sampled_from([*COMMANDS, "p.yaml", "totals", "orders", "a=1", "--format", "json", "--epoch", "2", "--explain", "-n", "3", "--var", "x", "-v", "-q", "--to", "1", "--from",
                         "list", "retry", "--key", "--set", "--reason", "--", "--at", "-o", "--state", "--engine", "sail", "--op", "-R", "é", ""])  # fmt: skip


@examples(150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(WORDS, max_size=7))
def test_no_words_are_a_defect(application, tmp_path: Path, words: list[str]) -> None:
    assume("init" not in words and "doctor" not in words)
    assert main(words) in {0, 1, 2, 4, 5, 64}
