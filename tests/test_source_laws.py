"""Laws that hold because the code lacks something: unpickling, a clock of a worker, SQL with names, a replica's id."""

import ast
import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

from kafka_io.net.security import ClientCredentials, Sasl
from pipelines.verify.verify import verify
from tests.all_requests import REQUESTS
from tests.small_table import SmallTable
from tests.syntax_trees import PACKAGES, ROOT, tree_of

WORKERS = (
    *(ROOT / "kafka_io" / room for room in ("reader", "records", "messages", "schema_registry", "v07", "wire", "net")),
    *(
        ROOT / "pipelines" / name
        for name in ("fetch/fetch.py", "fetch/slice_file.py", "layout/rows.py", "ledger/slice_facts.py")
    ),
)


def modules(*places: Path) -> Iterator[tuple[Path, ast.Module]]:
    """The syntax trees of all modules in these folders and files."""
    for place in places:
        for file in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
            yield file, tree_of(file)


def imported(tree: ast.Module) -> set[str]:
    """The packages that a module imports anywhere."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add((node.module or "").split(".")[0])
    return names


def test_no_module_unpickles() -> None:  # fault X06
    for file, tree in modules(*(ROOT / package for package in PACKAGES)):
        assert not imported(tree) & {"pickle", "marshal", "shelve", "cloudpickle", "dill"}, file


def test_a_worker_never_reads_the_time_of_day() -> None:  # fault S11
    for file, tree in modules(*WORKERS):
        used = {ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        assert not used & {"time.time", "time.time_ns", "datetime.now", "datetime.utcnow", "time.localtime"}, file


def test_one_module_lets_msgspec_learn_types() -> None:
    """Elsewhere two threads may use a type first at the same time, which crashes the process; see typed_json.py."""
    users = []
    for file, tree in modules(*(ROOT / package for package in PACKAGES)):
        for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
            name = ast.unparse(call.func)
            with_type = any(keyword.arg == "type" for keyword in call.keywords)
            is_typed = name == "msgspec.convert" or (name == "msgspec.json.decode" and with_type)
            if is_typed and "testing" not in file.parts:
                users.append(file.name)
    assert set(users) == {"typed_json.py", "answers.py"}  # the second calls `learn`


def test_no_request_claims_to_come_from_a_replica() -> None:  # fault X13
    ids = {field.default for request in REQUESTS.values() for field in fields(request) if field.name == "replica_id"}
    assert ids == {-1, -2}
    for file, tree in modules(*(ROOT / package for package in PACKAGES)):
        if "testing" not in file.parts:
            arguments = {node.arg for node in ast.walk(tree) if isinstance(node, ast.keyword)}
            assert "replica_id" not in arguments, file


def test_only_one_setting_of_a_login_leads_to_another_server() -> None:  # fault X10
    sections = {Sasl, ClientCredentials}
    names = {f"{section.__name__}.{field.name}" for section in sections for field in fields(section)}
    assert [name for name in names if re.search("url|uri|host|endpoint|address", name)] == ["ClientCredentials.url"]


def test_a_lake_whose_path_looks_like_sql_is_loaded_and_proven(tmp_path: Path) -> None:  # fault X04
    small = SmallTable(tmp_path / "it's; DROP TABLE files; --")
    small.commit(small.write(0, 100))
    proof = verify(small.table)
    assert (proof.problems, proof.partitions[0].rows) == ((), 10)


def test_every_dependency_is_pinned_with_hashes() -> None:  # fault X16
    locks = (ROOT / "requirements.lock", *(ROOT / "tests" / "kerberos").glob("*.lock"))
    texts = [lock.read_text().replace("\\\n", " ") for lock in locks]
    requirements = [
        line for text in texts for line in text.splitlines() if line.strip(" ") and not line.lstrip().startswith("#")
    ]
    assert (len(locks), len(requirements) > 100) == (3, True)
    for requirement in requirements:
        assert re.match(r"[\w.\[\]-]+==\S+( ; .+?)? +--hash=sha256:[0-9a-f]{64}", requirement), requirement
