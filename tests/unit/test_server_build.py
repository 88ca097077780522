"""The build of the server's package: each import has its longer name, and nothing but `punctual_server` is at the top level."""

import ast
import importlib.util
import json
import tomllib
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
SERVER = ROOT / "server"


@pytest.fixture(scope="module")
def build() -> ModuleType:
    spec = importlib.util.spec_from_file_location("hatch_build", SERVER / "hatch_build.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("from scheduler.model import job\n", "from punctual_server._engine.scheduler.model import job\n"),
        ("from local import process, user\n", "from punctual_server._engine.local import process, user\n"),
        ("import lambdas._child as child\n", "import punctual_server._engine.lambdas._child as child\n"),
        ("from lab.world.hub import (\n    Hub,\n)\n", "from punctual_server._engine.lab.world.hub import (\n    Hub,\n)\n"),
        ("if é := 1:\n    from ops.publish import publish\n", "if é := 1:\n    from punctual_server._engine.ops.publish import publish\n"),
        ("from local_things import scheduler\n", "from local_things import scheduler\n"),
        ("from . import local\nfrom punctual import Job\n", "from . import local\nfrom punctual import Job\n"),
        ('TEXT = "from scheduler.model import job"\n', 'TEXT = "from scheduler.model import job"\n'),
    ],
)
def test_an_import_of_the_engine_gets_its_longer_name(build: ModuleType, source: str, expected: str) -> None:
    assert build.rewritten(source, "a.py") == expected


@pytest.mark.parametrize("source", ["import scheduler.model.job\n", "import os, scheduler\n"])
def test_an_import_that_binds_the_short_name_is_refused(build: ModuleType, source: str) -> None:
    with pytest.raises(build.NotBuilt, match=r"a\.py, line 1"):
        build.rewritten(source, "a.py")


def imported(tree: ast.Module) -> set[str]:
    """Return the modules that a file imports by their whole names, and what it imports from them."""
    found = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    froms = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.level == 0]
    return found | {node.module or "" for node in froms} | {f"{node.module}.{alias.name}" for node in froms for alias in node.names}


def test_the_package_imports_only_what_it_has_and_what_it_requires(build: ModuleType) -> None:
    files = {name: build.rewritten(path.read_text(), name) for path, name in build.modules(ROOT)}
    there = {"punctual_server._engine"}
    for name in files:
        module = f"punctual_server.{name.removesuffix('.py').replace('/', '.')}"
        there.add(module.removesuffix(".__init__"))
    assert {"punctual_server.dev", "punctual_server._engine.local.stack", "punctual_server._engine.scheduler.storage.memory"} <= there
    for name, source in files.items():
        tree = ast.parse(source)
        compile(tree, name, "exec")
        for module in imported(tree):
            top = module.partition(".")[0]
            assert top not in build.NAMES and top not in ("aws_cdk", "constructs", "tests", "docs_build"), f"{name} imports {module}"
            assert top != "punctual_server" or module in there or module.rpartition(".")[0] in there, f"{name} imports {module}"


def test_the_package_requires_the_versions_of_the_lock() -> None:
    """Its lower bounds are the versions that all tests run with."""
    locked = dict(each.split("==") for each in tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"])
    of_server = tomllib.loads((SERVER / "pyproject.toml").read_text())["project"]
    bounds = {each.partition(">=")[0]: each.partition(">=")[2].partition(",")[0] for each in of_server["dependencies"]}
    assert bounds == locked
    (ministack,) = (each for each in of_server["optional-dependencies"]["dev"] if each.startswith("ministack"))
    assert ministack in tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"]["dev"]


def synthesized(folder: Path, template: str) -> Path:
    """Write what the CDK would write for two stacks, the second of which needs the first."""
    code = folder / "asset.abc"
    (code / "lambdas" / "__pycache__").mkdir(parents=True)
    (code / "lambdas" / "tick.py").write_text("handler = None\n")
    (code / "lambdas" / "__pycache__" / "tick.cpython-311.pyc").write_bytes(b"")
    artifacts = {
        name: {
            "type": "aws:cloudformation:stack",
            "properties": {"templateFile": f"{name}.template.json"},
            "dependencies": [*others, f"{name}.assets"],
        }
        for name, others in (("console", ["main"]), ("main", []))
    }
    (folder / "manifest.json").write_text(json.dumps({"artifacts": artifacts}))
    place = {"bucketName": "assets-${AWS::AccountId}-${AWS::Region}"}
    for name in artifacts:
        (folder / f"{name}.template.json").write_text(template if name == "console" else "{}")
        files = {
            "a": {"source": {"path": "asset.abc", "packaging": "zip"}, "destinations": {"x": {**place, "objectKey": "abc.zip"}}},
            "b": {
                "source": {"path": f"{name}.template.json", "packaging": "file"},
                "destinations": {"x": {**place, "objectKey": "b.json"}},
            },
        }
        (folder / f"{name}.assets.json").write_text(json.dumps({"files": files}))
    return folder


def test_an_assembly_has_stacks_in_order_archives_and_the_console(build: ModuleType, tmp_path: Path) -> None:
    console = tmp_path / "dist"
    console.mkdir()
    (console / "index.html").write_text("<html>")
    made = synthesized(tmp_path / "cdk.out", f'{{"HTTPPort": {build.PORT}}}')
    build.assemble(made, console, tmp_path / "assembly", "sources")
    manifest = json.loads((tmp_path / "assembly" / "assembly.json").read_text())
    assert manifest["stacks"] == ["main", "console"] and manifest["archives"] == ["abc.zip"] and manifest["sources"] == "sources"
    assert manifest["bucket"] == "assets-000000000000-us-east-1"
    assert zipfile.ZipFile(tmp_path / "assembly" / "abc.zip").namelist() == ["lambdas/tick.py"]
    assert (tmp_path / "assembly" / "console" / "index.html").exists()
    assert build._has(tmp_path / "assembly", "sources") and not build._has(tmp_path / "assembly", "others")


def test_a_port_at_an_unexpected_place_is_refused(build: ModuleType, tmp_path: Path) -> None:
    made = synthesized(tmp_path / "cdk.out", f'{{"Hash": "a{build.PORT}b"}}')
    with pytest.raises(build.NotBuilt, match="unexpected place"):
        build.assemble(made, tmp_path, tmp_path / "assembly", "sources")


def test_a_checkout_without_its_environment_is_refused_with_the_command(build: ModuleType, tmp_path: Path) -> None:
    with pytest.raises(build.NotBuilt, match="make setup console"):
        build.synthesize(tmp_path, tmp_path / "cdk.out")
