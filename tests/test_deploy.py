"""deploy/: what can be told of the files without a container engine or systemd."""

from __future__ import annotations

import configparser
import os
import re
import stat
import subprocess
from pathlib import Path

import pytest

DEPLOY = Path(__file__).parents[1] / "deploy"


def test_the_image_runs_as_an_ordinary_user_with_the_jars_inside():
    made, final = re.split(r"(?m)^FROM .*\n", (DEPLOY / "Containerfile").read_text())[1:]
    assert re.findall(r"(?m)^USER (\S+)", final) == ["errata"]
    assert "--require-hashes" in made
    assert "ERRATA_DELTA_JARS=/opt/jars" in final
    assert "COPY --from=made /opt/jars /opt/jars" in final


def test_the_python_of_the_image_s_recipe_is_of_this_package():
    program = re.search(r'python -c "(.*?)"', (DEPLOY / "Containerfile").read_text(), re.DOTALL)[1].replace("\\\n", "")
    compile(program, "Containerfile", "exec")
    exec(program.split(";")[0], {})  # noqa: S102 - the imports alone


def test_units_are_well_formed_and_take_rejects_for_success():
    units = {path.suffix: configparser.ConfigParser(strict=False, interpolation=None) for path in DEPLOY.glob("errata-daily.*")}
    for suffix, unit in units.items():
        unit.optionxform = str
        unit.read_string((DEPLOY / f"errata-daily{suffix}").read_text())
    assert units[".service"]["Service"]["SuccessExitStatus"] == "2"
    assert units[".service"]["Service"]["User"] != "root"
    assert units[".timer"]["Timer"]["OnCalendar"]


@pytest.mark.parametrize(("code", "told"), [(0, "success"), (2, "warning: records in the dead letter queue"), (6, "another run"), (4, "FAILURE (exit code 4)")])
def test_the_script_for_cron_tells_each_end_and_hands_its_code_on(tmp_path, code, told):
    errata = tmp_path / "errata"
    errata.write_text(f'#!/bin/bash\necho "$@" > {tmp_path}/words\nexit {code}\n')
    errata.chmod(errata.stat().st_mode | stat.S_IXUSR)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "ERRATA_LOG": str(tmp_path / "log"), "ERRATA_METRICS_SPOOL_DIR": str(tmp_path / "spool")}
    answer = subprocess.run([DEPLOY / "daily.sh", "p.yaml"], env=environment, check=False, capture_output=True)
    assert answer.returncode == code
    assert told in (tmp_path / "log").read_text()
    assert (tmp_path / "words").read_text().split()[:2] == ["run", "p.yaml"]
