"""The parts of Compose files and of Kubernetes' objects that `deploy/` uses, as models that take nothing else."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

Name = Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", max_length=63)]
Quantity = Annotated[str, Field(pattern=r"^[0-9]+(m|Mi|Gi)?$")]
Port = Annotated[int, Field(ge=1, le=65535)]


class Strict(BaseModel):
    """A mapping without other keys, whose values have these types already. Keys are written in camel case."""

    model_config = ConfigDict(extra="forbid", strict=True, alias_generator=to_camel)


# Compose ------------------------------------------------------------------------------------------------------------------
class Healthcheck(Strict):
    test: Annotated[list[str], Field(min_length=2)]
    interval: str | None = None
    retries: int | None = None


class Condition(Strict):
    condition: Literal["service_started", "service_healthy", "service_completed_successfully"]


class Replicas(Strict):
    replicas: int


class ComposeService(Strict):
    image: str
    hostname: Name | None = None
    entrypoint: list[str] = []
    command: list[str] = []
    environment: dict[str, str] = {}
    volumes: list[str] = []
    healthcheck: Healthcheck | None = None
    depends_on: list[str] | dict[str, Condition] = Field([], alias="depends_on")
    deploy: Replicas | None = None
    profiles: list[str] = []
    working_dir: str | None = Field(None, alias="working_dir")


class Compose(Strict):
    name: Name
    x_store: dict[str, str] = Field(alias="x-store")
    services: dict[Name, ComposeService]
    volumes: dict[Name, dict[str, Any]]


# Kubernetes ---------------------------------------------------------------------------------------------------------------
class Key(Strict):
    name: Name
    key: str


class PodField(Strict):
    field_path: Literal["status.podIP"]


class From(Strict):
    secret_key_ref: Key | None = None
    field_ref: PodField | None = None


class Variable(Strict):
    name: Annotated[str, Field(pattern=r"^[A-Z_]+$")]
    value: str | None = None
    value_from: From | None = None


class Ref(Strict):
    name: Name


class Variables(Strict):
    config_map_ref: Ref | None = None
    secret_ref: Ref | None = None


class ContainerPort(Strict):
    name: Name
    container_port: Port


class Get(Strict):
    path: str
    port: str


class Socket(Strict):
    port: str


class Probe(Strict):
    http_get: Get | None = None
    tcp_socket: Socket | None = None
    period_seconds: int


class Mount(Strict):
    name: Name
    mount_path: Annotated[str, Field(pattern="^/")]


class Resources(Strict):
    requests: dict[Literal["memory", "cpu", "storage"], Quantity]
    limits: dict[Literal["memory", "cpu"], Quantity] = {}


class Container(Strict):
    name: Name
    image: str
    command: list[str] = []
    args: list[str] = []
    working_dir: str | None = None
    env: list[Variable] = []
    env_from: list[Variables] = []
    ports: list[ContainerPort] = []
    readiness_probe: Probe | None = None
    resources: Resources | None = None
    volume_mounts: list[Mount] = []


class EmptyDir(Strict):
    size_limit: Quantity | None = None


class Volume(Strict):
    name: Name
    config_map: Ref | None = None
    empty_dir: EmptyDir | None = None


class PodSpec(Strict):
    containers: Annotated[list[Container], Field(min_length=1)]
    enable_service_links: Literal[False]
    hostname: Name | None = None
    restart_policy: Literal["Always", "Never", "OnFailure"] = "Always"
    volumes: list[Volume] = []


class Metadata(Strict):
    name: Name


class Labels(Strict):
    labels: dict[str, str]


class Pod(Strict):
    metadata: Labels
    spec: PodSpec


class Selector(Strict):
    match_labels: dict[str, str]


class Strategy(Strict):
    type: Literal["Recreate", "RollingUpdate"]


class DeploymentSpec(Strict):
    replicas: int
    selector: Selector
    template: Pod
    strategy: Strategy | None = None


class ClaimSpec(Strict):
    access_modes: list[Literal["ReadWriteOnce"]]
    resources: Resources


class Claim(Strict):
    metadata: Metadata
    spec: ClaimSpec


class StatefulSetSpec(Strict):
    service_name: Name
    replicas: int
    selector: Selector
    template: Pod
    volume_claim_templates: list[Claim]


class ServicePort(Strict):
    name: Name
    port: Port


class ServiceSpec(Strict):
    selector: dict[str, str]
    ports: list[ServicePort]
    cluster_ip: Literal["None"] | None = Field(None, alias="clusterIP")


class ExitCodes(Strict):
    container_name: Name
    operator: Literal["In", "NotIn"]
    values: list[Annotated[int, Field(ge=1, le=255)]]


class FailureRule(Strict):
    action: Literal["FailJob", "Ignore", "Count"]
    on_exit_codes: ExitCodes


class FailurePolicy(Strict):
    rules: list[FailureRule]


class JobSpec(Strict):
    backoff_limit: int
    pod_failure_policy: FailurePolicy
    template: Pod


class Job(Strict):
    spec: JobSpec


class CronJobSpec(Strict):
    schedule: Annotated[str, Field(pattern=r"^(\S+ ){4}\S+$")]
    concurrency_policy: Literal["Allow", "Forbid", "Replace"]
    job_template: Job


class Peer(Strict):
    pod_selector: Selector


class Ingress(Strict):
    from_: list[Peer] = Field(alias="from")


class PolicySpec(Strict):
    pod_selector: Selector
    policy_types: list[Literal["Ingress"]]
    ingress: list[Ingress]


class Object(Strict):
    """The keys of every object."""

    metadata: Metadata


class ConfigMap(Object):
    api_version: Literal["v1"]
    kind: Literal["ConfigMap"]
    data: dict[str, str]


class Service(Object):
    api_version: Literal["v1"]
    kind: Literal["Service"]
    spec: ServiceSpec


class Deployment(Object):
    api_version: Literal["apps/v1"]
    kind: Literal["Deployment"]
    spec: DeploymentSpec


class StatefulSet(Object):
    api_version: Literal["apps/v1"]
    kind: Literal["StatefulSet"]
    spec: StatefulSetSpec


class CronJob(Object):
    api_version: Literal["batch/v1"]
    kind: Literal["CronJob"]
    spec: CronJobSpec


class NetworkPolicy(Object):
    api_version: Literal["networking.k8s.io/v1"]
    kind: Literal["NetworkPolicy"]
    spec: PolicySpec


Manifest = Annotated[ConfigMap | Service | Deployment | StatefulSet | CronJob | NetworkPolicy, Field(discriminator="kind")]


def pod_of(one: Manifest) -> Pod | None:
    """The pods that an object makes."""
    if isinstance(one, Deployment | StatefulSet):
        return one.spec.template
    return one.spec.job_template.spec.template if isinstance(one, CronJob) else None
