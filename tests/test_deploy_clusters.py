"""The files of deploy/ for clusters: their structure, what refers to what, and whether their commands are known to Spark and to Errata."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from zipfile import ZipFile

import pytest
import yaml
from pydantic import TypeAdapter, ValidationError

from errata.cli import main
from storage.engines.spark.config import DELTA, OBJECT_STORES
from storage.engines.spark.jars import DELTA_JARS, spark_home
from tests.support.manifests import Compose, ConfigMap, Container, CronJob, Manifest, Pod, Service, StatefulSet, pod_of

DEPLOY = Path(__file__).parents[1] / "deploy"
MANIFEST: TypeAdapter[Manifest] = TypeAdapter(Manifest)
GIVEN = {"store": {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"}, "pipelines": {"pipeline.yaml", "errata.toml"}}
"""Secrets and files that the head of kubernetes.yaml has somebody make."""


def compose() -> Compose:
    return Compose.model_validate(yaml.safe_load((DEPLOY / "compose.yaml").read_text()))


def manifests() -> list[Manifest]:
    return [MANIFEST.validate_python(one) for one in yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text())]


def settings(text: str) -> dict[str, str]:
    return dict(line.split(None, 1) for line in text.splitlines() if line and not line.startswith("#"))


PODS: list[Pod] = [pod for pod in map(pod_of, manifests()) if pod is not None]
CONTAINERS: dict[str, Container] = {one.name: one for pod in PODS for one in pod.spec.containers}


def test_a_manifest_with_a_wrong_key_or_type_is_no_manifest() -> None:
    good = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}, "spec": {"selector": {"app": "a"}, "ports": [{"name": "p", "port": 1}]}}
    MANIFEST.validate_python(good)
    for key, value in (("port", "1"), ("prot", 1)):
        with pytest.raises(ValidationError):
            MANIFEST.validate_python({**good, "spec": {"selector": {"app": "a"}, "ports": [{"name": "p", "port": 1, key: value}]}})


def test_services_of_compose_name_what_is_there() -> None:
    found = compose()
    for service in found.services.values():
        assert set(service.depends_on) <= set(found.services)
        healthy = {name for name, one in service.depends_on.items() if one.condition == "service_healthy"} if isinstance(service.depends_on, dict) else set()
        assert all(found.services[name].healthcheck for name in healthy)
        assert {volume.split(":")[0] for volume in service.volumes} <= {*found.volumes, "${PIPELINES"}
    assert found.services["errata"].profiles, "a run is started by hand"


def test_compose_and_kubernetes_start_the_same() -> None:
    here = {name: (one.entrypoint, [word for word in one.command if "=" not in word]) for name, one in compose().services.items() if name != "errata"}
    of_pods = {"--host": "$(POD_IP)", "--conf": "spark.driver.host=$(POD_IP)"}
    for name, (program, words) in here.items():
        given = " ".join(CONTAINERS[name].args)
        for option, value in of_pods.items():
            given = given.replace(f"{option} {value} ", "")
        assert (CONTAINERS[name].command, given) == (program, " ".join(words))
        assert CONTAINERS[name].image == compose().services[name].image


def test_programs_of_spark_are_in_its_jars() -> None:
    named = {word for one in CONTAINERS.values() for word in one.args if word.startswith("org.apache.spark")}
    assert len(named) == 3
    classes = {name for jar in (spark_home() / "jars").glob("spark-c*.jar") for name in ZipFile(jar).namelist()}
    assert [name for name in named if f"{name.replace('.', '/')}.class" not in classes] == []
    assert {one.command[0] for one in CONTAINERS.values() if "spark" in one.image and one.name != "errata"} <= {path.name for path in (spark_home() / "bin").iterdir()}


def test_the_connect_server_has_what_runs_need_of_it() -> None:
    text = (DEPLOY / "spark-defaults.conf").read_text()
    found = settings(text)
    assert DELTA.items() <= found.items()
    assert OBJECT_STORES.items() <= found.items()
    assert [Path(jar).name for jar in found["spark.jars"].split(",")] == [jar.file for jar in DELTA_JARS]
    assert [one.data["spark-defaults.conf"] for one in manifests() if isinstance(one, ConfigMap) and one.metadata.name == "spark"] == [text]
    assert found["spark.driver.extraClassPath"] == found["spark.executor.extraClassPath"] == "/opt/jars/s3/*"


def test_addresses_are_those_of_services() -> None:
    services = {one.metadata.name: one.spec for one in manifests() if isinstance(one, Service)}
    texts = (path.read_text() for path in (DEPLOY / "compose.yaml", DEPLOY / "kubernetes.yaml", DEPLOY / "spark-defaults.conf"))
    named = {(host, int(port)) for text in texts for host, port in re.findall(r"(?:spark|sc|http)://(\w+):(\d+)", text)} - {("localhost", 9000)}
    assert named == {(name, spec.ports[0].port) for name, spec in services.items()}
    for name, spec in services.items():
        ports = [(port.name, port.container_port) for port in CONTAINERS[name].ports]
        assert ports == [(port.name, port.port) for port in spec.ports]
        assert [pod for pod in PODS if spec.selector.items() <= pod.metadata.labels.items()] == [pod for pod in PODS if pod.spec.containers[0].name == name]


def test_pods_refer_to_what_is_there() -> None:
    kept = {**{one.metadata.name: set(one.data) for one in manifests() if isinstance(one, ConfigMap)}}
    for one in manifests():
        pod = pod_of(one)
        if pod is None:
            continue
        claims = {claim.metadata.name for claim in one.spec.volume_claim_templates} if isinstance(one, StatefulSet) else set()
        assert not hasattr(one.spec, "selector") or one.spec.selector.match_labels.items() <= pod.metadata.labels.items()
        assert {volume.config_map.name for volume in pod.spec.volumes if volume.config_map} <= {*kept, *GIVEN}
        for container in pod.spec.containers:
            assert {mount.name for mount in container.volume_mounts} <= claims | {volume.name for volume in pod.spec.volumes}
            assert {known.config_map_ref.name for known in container.env_from if known.config_map_ref} <= set(kept)
            assert {known.secret_ref.name for known in container.env_from if known.secret_ref} <= set(GIVEN)
            keys = [variable.value_from.secret_key_ref for variable in container.env if variable.value_from and variable.value_from.secret_key_ref]
            assert all(key.key in GIVEN[key.name] for key in keys)
            used = set(re.findall(r"\$\((\w+)\)", " ".join(container.args)))
            assert used <= {variable.name for variable in container.env}
            probe = container.readiness_probe
            named = [place.port for place in ((probe.http_get, probe.tcp_socket) if probe else ()) if place]
            assert set(named) <= {port.name for port in container.ports}


def test_nobody_else_reaches_spark() -> None:
    """Only pods with the label of the policy do, and all pods have it."""
    assert {pod.metadata.labels.get("part-of") for pod in PODS} == {"errata"}
    assert not re.search("nodePort|LoadBalancer|hostPort|hostNetwork", (DEPLOY / "kubernetes.yaml").read_text())
    assert not re.search(r"(?m)^\s+ports:", (DEPLOY / "compose.yaml").read_text())


def test_the_run_is_one_of_errata(capsys: pytest.CaptureFixture[str]) -> None:
    job = next(one for one in manifests() if isinstance(one, CronJob))
    container = job.spec.job_template.spec.template.spec.containers[0]
    words = shlex.split(container.args[0].partition(";")[0])
    assert words[0] == "errata"
    variables = {variable.name for variable in container.env}
    assert variables == {name for name in compose().services["errata"].environment if name.startswith("ERRATA_")}
    assert main([words[1], "--help"]) == 0
    said = capsys.readouterr().out
    for option in [*(word for word in words if word.startswith("--")), *(f"--{name.removeprefix('ERRATA_').lower()}" for name in variables)]:
        assert option in said


def test_jars_of_the_image_are_checked_by_their_digests() -> None:
    recipe = (DEPLOY / "Containerfile.s3").read_text()
    fetched = {f"{module}-{version}.jar" for module, version in re.findall(r"fetch \S+ (\S+) ([\d.]+)", recipe)}
    assert fetched == set(re.findall(r"[0-9a-f]{64} (\S+\.jar)", recipe))
    hadoop = next((spark_home() / "jars").glob("hadoop-client-api-*.jar")).stem.rpartition("-")[2]
    assert f"hadoop-aws-{hadoop}.jar" in fetched
    assert re.findall(r"(?m)^USER (\S+)", recipe)[-1] == "errata"
