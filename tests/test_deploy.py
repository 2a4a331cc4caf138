"""The files of deploy/, as far as they can be checked without a container engine or systemd."""

from __future__ import annotations

import configparser
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "deploy"


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


@pytest.fixture
def image():
    """A folder that everybody may look into, in the place of an image's root."""
    folder = Path(tempfile.mkdtemp(prefix="errata-image-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def in_image(text, image):
    """The commands of a recipe with `image` for the root, Debian's packages left out: this machine has its own."""
    steps = re.findall(r"(?ms)^RUN (.*?[^\\])$", text)
    moved = [re.sub(r"(?<![\w.])/(opt|build)\b", rf"{image}/\1", step.replace("\\\n", "")) for step in steps]
    return [step for step in moved if "apt-get" not in step]


@pytest.mark.deep
def test_the_steps_of_the_recipe_make_what_runs_without_network_and_not_as_root(image):
    if os.geteuid() != 0 or not all(map(shutil.which, ("java", "unshare", "ip"))):
        pytest.skip("needs Java, and root for a network and a user of its own")
    made, final = re.split(r"(?m)^FROM .*\n", (DEPLOY / "Containerfile").read_text())[1:]
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout.decode().split("\0")
    for name in filter(None, tracked):
        (image / "build" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, image / "build" / name)
    (image / "opt").mkdir()
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV", "ERRATA_DELTA_JARS")}
    for step in in_image(made, image):
        python = f"{Path(sys.executable).resolve().parent}:{environment['PATH']}"
        subprocess.run(["bash", "-euc", step], cwd=image / "build", env={**environment, "PATH": python}, check=True, timeout=900)
    work = image / "work"
    shutil.copytree(ROOT / "examples" / "orders", work, ignore=shutil.ignore_patterns(".errata", "out"))
    shutil.rmtree(image / "build")  # the final stage has the environment and the jars only
    settings = dict(re.findall(r"(\w+)=(\S+)", re.search(r"(?m)^ENV (.*)$", final)[1].replace("/opt", f"{image}/opt")))
    path = settings["PATH"].replace("$PATH", os.environ["PATH"])
    passwd = image / "passwd"
    passwd.write_text(Path("/etc/passwd").read_text() + f"errata:x:10001:10001::{work}:/bin/sh\n")  # as useradd leaves it
    begin = f'mount --bind {passwd} /etc/passwd && ip link set lo up && exec unshare --user --map-user=10001 --map-group=10001 "$@"'
    alone = ["unshare", "--net", "--mount", "bash", "-c", begin, "alone"]
    for engine in ("sail", "spark"):
        command = ["errata", "run", "pipeline.yaml", "--engine", engine, "--state", f"state-{engine}", "--force", "--quiet"]
        variables = {**settings, "PATH": path, "HOME": str(work)}
        done = subprocess.run([*alone, *command], cwd=work, env=variables, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, done.stderr
        assert (work / "out" / "revenue.csv").read_text() == "region,orders,revenue,top\nnorth,2,79,40\nsouth,2,301,240\nwest,1,37.5,37.5\n"


def test_units_are_well_formed_and_take_rejects_for_success():
    units = {path.suffix: configparser.ConfigParser(strict=False, interpolation=None) for path in DEPLOY.glob("errata-daily.*")}
    for suffix, unit in units.items():
        unit.optionxform = str
        unit.read_string((DEPLOY / f"errata-daily{suffix}").read_text())
    assert units[".service"]["Service"]["SuccessExitStatus"] == "2"
    assert units[".service"]["Service"]["User"] != "root"
    assert units[".timer"]["Timer"]["OnCalendar"]


@pytest.mark.parametrize(("code", "message"), [(0, "success"), (2, "warning: records in the dead letter queue"), (6, "another run"), (4, "FAILURE (exit code 4)")])
def test_the_script_for_cron_tells_each_end_and_hands_its_code_on(tmp_path, code, message):
    errata = tmp_path / "errata"
    errata.write_text(f'#!/bin/bash\necho "$@" > {tmp_path}/words\nexit {code}\n')
    errata.chmod(errata.stat().st_mode | stat.S_IXUSR)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "ERRATA_LOG": str(tmp_path / "log"), "ERRATA_METRICS_SPOOL_DIR": str(tmp_path / "spool")}
    answer = subprocess.run([DEPLOY / "daily.sh", "p.yaml"], env=environment, check=False, capture_output=True)
    assert answer.returncode == code
    assert message in (tmp_path / "log").read_text()
    assert (tmp_path / "words").read_text().split()[:2] == ["run", "p.yaml"]
