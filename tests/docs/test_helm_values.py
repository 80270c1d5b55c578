"""The values for Dagster's Helm chart on the page `install` fit the chart, Kubernetes and Dagster (fault F09)."""

import re
from pathlib import Path
from typing import Any

import dagster as dg
import kubernetes_validate
import pytest
import yaml
from dagster._config import process_config
from dagster_k8s import K8sRunLauncher

from tests.docs.deployments import check_command
from tests.docs.pages import ROOT, run_blocks
from tests.docs.test_deployments import KUBERNETES, OURS

PAGE = ROOT / "docs" / "install.md"
HOME = "/opt/dagster/dagster_home"
"""The folder that the chart names in DAGSTER_HOME. In the pod of a run, Dagster itself mounts `dagster.yaml` there."""

KEYS = {
    "": "concurrency dagster-user-deployments dagsterDaemon dagsterWebserver generatePostgresqlPasswordSecret global "
    "imagePullSecrets ingress postgresql retention runLauncher serviceAccount telemetry",
    "dagster-user-deployments": "enabled enableSubchart imagePullSecrets deployments",
    "dagster-user-deployments.deployments": "name image port dagsterApiGrpcArgs codeServerArgs env envConfigMaps "
    "envSecrets includeConfigInLaunchedRuns deploymentStrategy annotations labels nodeSelector affinity tolerations "
    "resources podSecurityContext securityContext livenessProbe readinessProbe startupProbe volumeMounts volumes",
    "dagster-user-deployments.deployments.image": "repository tag pullPolicy",
    "runLauncher": "type config",
    "runLauncher.config": "k8sRunLauncher",
    "runLauncher.config.k8sRunLauncher": "image imagePullPolicy jobNamespace loadInclusterConfig kubeconfigFile labels "
    "envConfigMaps envSecrets envVars volumeMounts volumes failPodOnRunFailure",
    "concurrency": "enabled runs pools",
    "concurrency.runs": "maxConcurrentRuns tagConcurrencyLimits",
    "concurrency.pools": "defaultLimit granularity opGranularityRunBuffer",
    "dagsterDaemon": "enabled runMonitoring runRetries sensors schedules runCoordinator resources",
    "postgresql": "enabled postgresqlScheme postgresqlHost postgresqlUsername postgresqlPassword postgresqlDatabase "
    "postgresqlParams service",
    "global": "postgresqlSecretName dagsterHome serviceAccountName celeryConfigSecretName dagsterInstanceConfigMap",
    "telemetry": "enabled",
}
"""Keys that the chart has at each place, in version 1.13; other places have keys of Kubernetes."""


@pytest.fixture
def values() -> dict[str, Any]:
    """The values of the page."""
    [block] = run_blocks(PAGE, "yaml")
    content: dict[str, Any] = yaml.safe_load(block.text)
    return content


@pytest.fixture
def deployment(values: dict[str, Any]) -> dict[str, Any]:
    """The only user code deployment."""
    [deployment] = values["dagster-user-deployments"]["deployments"]
    assert isinstance(deployment, dict)
    return deployment


@pytest.fixture
def launcher(values: dict[str, Any]) -> dict[str, Any]:
    """What the chart passes to the launcher."""
    assert values["runLauncher"]["type"] == K8sRunLauncher.__name__
    launcher = values["runLauncher"]["config"]["k8sRunLauncher"]
    assert isinstance(launcher, dict)
    return launcher


def unknown_keys(content: Any, place: str = "") -> list[str]:
    """The keys that the chart does not have."""
    items = content if isinstance(content, list) else [content]
    unknown = []
    for item in items:
        if not isinstance(item, dict) or place not in KEYS:
            continue
        for key, value in item.items():
            path = f"{place}.{key}".lstrip(".")
            unknown += unknown_keys(value, path) if key in KEYS[place].split() else [path]
    return unknown


def test_the_chart_has_each_key(values: dict[str, Any], deployment: dict[str, Any]) -> None:
    assert unknown_keys(values) == []
    deployment["codeServerArg"] = []
    assert unknown_keys(values) == ["dagster-user-deployments.deployments.codeServerArg"]


def test_the_page_installs_the_chart_of_the_pinned_version_of_dagster(values: dict[str, Any]) -> None:
    page = PAGE.read_text(encoding="utf-8")
    [version] = re.findall(r"^dagster==(\S+)", (ROOT / "requirements.lock").read_text(), re.MULTILINE)
    [(release, given)] = re.findall(r"helm upgrade --install (\S+) dagster/dagster --version (\S+) ", page)
    assert given == version
    secret = values["global"]["postgresqlSecretName"]
    assert f"secret generic {secret} --from-literal=postgresql-password=" in page
    instance = {volume["configMap"]["name"] for volume in volumes_of(values) if volume["name"] == "instance"}
    assert instance == {f"{release}-instance"}  # the chart names it so, if the name of the release contains `dagster`


def volumes_of(values: dict[str, Any]) -> list[dict[str, Any]]:
    """The volumes of the deployment."""
    [deployment] = values["dagster-user-deployments"]["deployments"]
    return list(deployment["volumes"])


def test_the_code_server_is_started_with_options_that_exist(deployment: dict[str, Any]) -> None:
    port = str(deployment["port"])
    check_command(["dagster", "code-server", "start", "-h", "0.0.0.0", "-p", port, *deployment["codeServerArgs"]])
    assert deployment["image"]["repository"].rpartition("/")[2] + ":" + deployment["image"]["tag"] in OURS


def test_kubernetes_accepts_what_the_chart_makes_of_the_deployment(deployment: dict[str, Any]) -> None:
    labels = {"deployment": deployment["name"]}
    container = {
        "name": "dagster-user-deployments",
        "image": "image",
        "envFrom": [{"secretRef": secret} for secret in deployment["envSecrets"]],
        **{name: deployment[name] for name in ("resources", "securityContext", "volumeMounts")},
    }
    pod = {
        "securityContext": deployment["podSecurityContext"],
        "containers": [container],
        "volumes": deployment["volumes"],
    }
    manifest = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "dagster-penstock"},
        "spec": {
            "selector": {"matchLabels": labels},
            "strategy": deployment["deploymentStrategy"],
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }
    kubernetes_validate.validate(manifest, KUBERNETES, strict=True)
    assert {mount["name"] for mount in deployment["volumeMounts"]} == {each["name"] for each in deployment["volumes"]}
    assert f"{HOME}/dagster.yaml" in {mount["mountPath"] for mount in deployment["volumeMounts"]}


def test_a_run_gets_settings_and_secrets_and_mounts_nothing_twice(
    deployment: dict[str, Any], launcher: dict[str, Any]
) -> None:
    """Kubernetes refuses a pod with two mounts at one path, and Dagster mounts `dagster.yaml` into each run."""
    assert deployment["includeConfigInLaunchedRuns"] == {"enabled": False}
    assert not any(mount["mountPath"].startswith(HOME) for mount in launcher["volumeMounts"])
    assert launcher["envSecrets"] == deployment["envSecrets"]
    settings = [mount for mount in deployment["volumeMounts"] if mount["name"] == "settings"]
    assert launcher["volumeMounts"] == settings
    config = {
        "service_account_name": "dagster",
        "instance_config_map": "dagster-instance",
        "dagster_home": HOME,
        "image_pull_policy": launcher["imagePullPolicy"],
        "env_secrets": [secret["name"] for secret in launcher["envSecrets"]],
        "volumes": launcher["volumes"],
        "volume_mounts": launcher["volumeMounts"],
    }
    result = process_config(K8sRunLauncher.config_type(), config)  # type: ignore[no-untyped-call] # Dagster gives it no types
    assert result.success, result.errors


def test_dagster_accepts_the_limits(values: dict[str, Any], tmp_path: Path) -> None:
    runs, pools = values["concurrency"]["runs"], values["concurrency"]["pools"]
    monitoring = values["dagsterDaemon"]["runMonitoring"]
    instance_file = {
        "telemetry": values["telemetry"],
        "concurrency": {
            "runs": {"max_concurrent_runs": runs["maxConcurrentRuns"]},
            "pools": {"default_limit": pools["defaultLimit"], "granularity": pools["granularity"]},
        },
        "run_monitoring": {
            "enabled": monitoring["enabled"],
            "start_timeout_seconds": monitoring["startTimeoutSeconds"],
        },
        "run_retries": values["dagsterDaemon"]["runRetries"],
    }
    (tmp_path / "dagster.yaml").write_text(yaml.safe_dump(instance_file))
    with dg.DagsterInstance.from_config(str(tmp_path)) as instance:
        assert instance.run_monitoring_enabled
        assert not instance.run_retries_enabled
        assert instance.get_concurrency_config().pool_config.default_pool_limit == 2
