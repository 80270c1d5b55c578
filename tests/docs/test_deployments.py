"""The files of docs/deploy are valid, agree with each other, and start commands that exist."""

import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import dagster as dg
import kubernetes_validate
import pytest
import yaml
from compose_spec.models import ComposeSpecification, Service
from dagster._config import process_config
from dagster_k8s import K8sRunLauncher

from resources.settings.settings import HousekeepingSettings, Settings
from tests.docs.deployments import (
    COMPOSE,
    DEPLOY,
    TIMERS,
    UNITS,
    check_command,
    commands,
    compose,
    dockerfile,
    manifests,
    mounted_files,
    of_kind,
    pods,
    secrets_of,
    stages,
    unit,
    unit_command,
)
from tests.docs.pages import ROOT, run_blocks
from tests.tools import ANALYZE

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
VERSION = PROJECT["version"]
KUBERNETES = "1.32"
OURS = {f"{name}:{VERSION}" for name in ("penstock", "penstock-executor")}


def test_each_command_exists_with_its_options() -> None:
    started = list(commands())
    assert len(started) > 15
    for words in started:
        check_command(words)
    with pytest.raises(AssertionError):
        check_command(["penstock", "metrics", "--serve", "1", "more"])


def test_each_manifest_fits_the_schema_of_kubernetes() -> None:
    for manifest in manifests():
        kubernetes_validate.validate(manifest, KUBERNETES, strict=True)
    wrong = {**manifests()[0], "speck": {}}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, KUBERNETES, strict=True)


def test_the_manifests_name_objects_that_exist() -> None:
    names = {(manifest["kind"], manifest["metadata"]["name"]) for manifest in manifests()}
    assert {manifest["metadata"]["namespace"] for manifest in manifests() if manifest["kind"] != "Namespace"} == {
        "penstock"
    }
    selectors = [service["spec"]["selector"] for service in of_kind("Service")]
    assert all(any(pod["metadata"]["labels"] == selector for pod in pods()) for selector in selectors)
    for pod in pods():
        [container] = pod["spec"]["containers"]
        assert ("ServiceAccount", pod["spec"].get("serviceAccountName", "penstock-daemon")) in names
        assert {("Secret", name) for name in secrets_of(container)} <= names
        maps = [volume["configMap"]["name"] for volume in pod["spec"]["volumes"] if "configMap" in volume]
        assert {("ConfigMap", name) for name in maps} <= names
        assert container["image"] in OURS
        assert pod["spec"]["securityContext"]["runAsNonRoot"]
    for binding in of_kind("RoleBinding"):
        assert ("Role", binding["roleRef"]["name"]) in names
        assert {("ServiceAccount", subject["name"]) for subject in binding["subjects"]} <= names


def test_kubernetes_cleans_at_night_if_dagster_does_not() -> None:  # fault F08
    [job] = of_kind("CronJob")
    assert job["spec"]["schedule"] == HousekeepingSettings().cron
    assert job["spec"]["suspend"]


@pytest.fixture
def settings_of_kubernetes() -> dict[str, str]:
    """The files in the only ConfigMap."""
    [files] = (manifest["data"] for manifest in of_kind("ConfigMap"))
    assert isinstance(files, dict)
    return files


def test_the_settings_of_kubernetes_are_valid(settings_of_kubernetes: dict[str, str]) -> None:
    settings = Settings.of(tomllib.loads(settings_of_kubernetes["penstock.toml"]), folder=Path("/"))
    assert settings.spark["spark.kubernetes.container.image"] in OURS
    [secret] = of_kind("Secret")
    assert {"KAFKA_PASSWORD", "DAGSTER_POSTGRES_URL"} <= secret["stringData"].keys()
    pod = yaml.safe_load(settings_of_kubernetes["executor.yaml"])
    kubernetes_validate.validate(
        {**pod, "spec": {**pod["spec"], "containers": [{**pod["spec"]["containers"][0], "image": "i"}]}},
        KUBERNETES,
        strict=True,
    )


def test_the_launcher_of_kubernetes_accepts_its_configuration(settings_of_kubernetes: dict[str, str]) -> None:
    launcher = yaml.safe_load(settings_of_kubernetes["dagster.yaml"])["run_launcher"]
    assert (launcher["module"], launcher["class"]) == ("dagster_k8s", "K8sRunLauncher")
    schema = K8sRunLauncher.config_type()  # type: ignore[no-untyped-call] # Dagster gives it no types
    result = process_config(schema, launcher["config"])
    assert result.success, result.errors
    assert launcher["config"]["job_image"] in OURS
    wrong = {**launcher["config"], "job_imag": "penstock"}
    assert not process_config(schema, wrong).success


def without_servers(text: str) -> str:
    """The file dagster.yaml without the storage and the launcher, which need servers; they have tests of their own."""
    content: dict[str, Any] = yaml.safe_load(text)
    return str(yaml.safe_dump({name: content[name] for name in content if name not in {"storage", "run_launcher"}}))


def test_dagster_accepts_each_instance(settings_of_kubernetes: dict[str, str], tmp_path: Path) -> None:
    for text in ((DEPLOY / "dagster.yaml").read_text(), settings_of_kubernetes["dagster.yaml"]):
        (tmp_path / "dagster.yaml").write_text(without_servers(text))
        with dg.DagsterInstance.from_config(str(tmp_path)) as instance:
            assert instance.run_monitoring_enabled
            assert not instance.telemetry_enabled
            assert instance.get_concurrency_config().pool_config.default_pool_limit == 2


def test_the_page_has_the_storage_of_the_instance() -> None:
    """Tests with a real Postgres start an instance with this storage."""
    [block] = run_blocks(ROOT / "docs" / "dagster-production.md", "yaml")
    instance = yaml.safe_load((DEPLOY / "dagster.yaml").read_text())
    assert yaml.safe_load(block.text) == {"storage": instance["storage"]}


def test_the_compose_file_fits_the_specification() -> None:
    content = compose()
    ComposeSpecification.model_validate(content)
    fields = {field.alias or name for name, field in Service.model_fields.items()}
    for service in content["services"].values():
        assert service.keys() <= fields | {"build"}
        assert set(service.get("depends_on", ())) <= content["services"].keys()
        named = [volume.partition(":")[0] for volume in service.get("volumes", ())]
        assert {name for name in named if not name.startswith((".", "/"))} <= content["volumes"].keys()
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", ()))


def test_each_image_has_a_version() -> None:
    images = [service["image"] for service in compose()["services"].values()]
    images += [text.partition("=")[2] for name, text in dockerfile() if name == "ARG" and "IMAGE=" in text]
    assert len(images) == 12
    for image in images:
        _, _, tag = image.partition(":")
        assert tag.lstrip("v")[:1].isdigit(), image
    assert {image for image in images if image.startswith("penstock")} <= OURS


def test_the_files_that_containers_mount_exist_and_are_valid() -> None:
    mounted = set(mounted_files())
    assert len(mounted) == 8
    assert [file for file in mounted if not file.exists()] == []
    settings = Settings.load(COMPOSE.parent / "penstock.toml")
    services = compose()["services"]
    assert settings.clusters["main"].bootstrap == "kafka:9092"
    assert services["kafka"]["environment"]["KAFKA_ADVERTISED_LISTENERS"].startswith("INSIDE://kafka:9092,")
    assert settings.lake_options["aws_endpoint_url"] == "http://s3:7070"


def test_the_units_agree_with_each_other() -> None:
    [wanted] = [value for name, value in unit(DEPLOY / "systemd" / "penstock.target") if name == "Wants"]
    assert {"penstock-code.service", "penstock-retention.timer"} < set(wanted.split())
    timed = {file.with_suffix(".service").name for file in TIMERS}
    names = ("load", "verify", "clean", "retention")  # fault F08
    assert timed == {f"penstock-{name}.service" for name in names}
    assert {file.name for file in UNITS} == timed | {name for name in wanted.split() if name.endswith(".service")}
    for file in UNITS:
        values = dict(unit(file))
        assert (values["User"], values["EnvironmentFile"]) == ("penstock", "/etc/penstock/environment")
        assert (values.get("PartOf") == "penstock.target") == (file.name not in timed)
        assert (values.get("Type") == "oneshot") == (file.name in timed)
    for timer in TIMERS:
        values = dict(unit(timer))
        assert (values["WantedBy"] == "penstock.target") == (timer.name in wanted.split())
    variables = dict(unit(DEPLOY / "systemd" / "environment"))
    assert {"PENSTOCK_SETTINGS", "DAGSTER_HOME", "DAGSTER_POSTGRES_URL"} <= variables.keys()


@pytest.fixture
def units(tmp_path: Path) -> list[Path]:
    """All units, which start the programs of this environment: systemd looks whether these exist."""
    for file in (*UNITS, *TIMERS, DEPLOY / "systemd" / "penstock.target"):
        text = file.read_text().replace("/opt/penstock/bin/", f"{Path(sys.executable).parent}/")
        (tmp_path / file.name).write_text(text)
    return sorted(tmp_path.iterdir())


def systemd_analyze(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([ANALYZE.path, *arguments], capture_output=True, text=True, timeout=60, check=False)


def test_systemd_accepts_the_units(units: list[Path]) -> None:
    verified = systemd_analyze("verify", *map(str, units))
    assert (verified.returncode, verified.stdout, verified.stderr) == (0, "", "")
    units[0].write_text(units[0].read_text().replace("User=", "Usr="))
    assert "Unknown key 'Usr'" in systemd_analyze("verify", *map(str, units)).stderr


def test_the_units_have_few_rights(units: list[Path]) -> None:
    """The exposure of a service is rated from 0 to 10, here as 0 to 100."""
    services = [str(file) for file in units if file.suffix == ".service"]
    assert systemd_analyze("security", "--offline=true", "--threshold=35", *services).returncode == 0
    Path(services[0]).write_text(Path(services[0]).read_text().replace("User=penstock\n", ""))
    assert systemd_analyze("security", "--offline=true", "--threshold=35", *services).returncode == 1


def test_the_page_installs_what_the_units_start() -> None:
    page = (ROOT / "docs" / "install.md").read_text()
    assert "docs/deploy/systemd/penstock*" in page
    assert unit_command(DEPLOY / "systemd" / "penstock-retention.service")[1] == "/opt/penstock/delete_old_runs.py"
    assert "install -m 644 docs/deploy/delete_old_runs.py /opt/penstock/" in page
    for timer in TIMERS:
        assert timer.name in page or dict(unit(timer))["WantedBy"] == "penstock.target"


@pytest.mark.parametrize("stage", ["core", "dagster", "executor"])
def test_an_image_runs_as_a_user_that_is_not_root(stage: str) -> None:
    instructions = [*stages()["core"], *stages()[stage]]
    assert [text for name, text in instructions if name == "USER"][-1] == "10001:10001"
    assert any(name == "HEALTHCHECK" for name, _ in instructions)


def test_the_image_copies_files_that_exist_and_uses_the_versions_of_the_lock() -> None:
    copied = [text for name, text in stages()["build"] if name == "COPY"]
    assert len(copied) == 5
    assert [word for text in copied for word in text.split()[:-1] if not (ROOT / word).exists()] == []
    lock = (ROOT / "requirements.lock").read_text()
    [spark] = [line.partition("==")[2].split()[0] for line in lock.splitlines() if line.startswith("pyspark==")]
    assert any(text.startswith(f"SPARK_IMAGE=apache/spark:{spark}-") for _, text in dockerfile())
    assert "all" in PROJECT["optional-dependencies"]


def test_install_names_each_extra() -> None:
    rows = (ROOT / "docs" / "install.md").read_text().partition("| extra |")[2].partition("\n\n")[0].splitlines()[2:]
    extras = PROJECT["optional-dependencies"].keys() - {"bench", "demo", "dev", "docs"}
    assert {row.split("`")[1] for row in rows} == extras
