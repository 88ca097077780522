"""The build of the package: the engine below `punctual_server._engine`, and the assembly of the local stage with functions and console.

A checkout has the engine in top-level packages (`scheduler`, `lambdas` ...), which would be in the way in the environment of a user. Here
they get a longer name, and each import of them is rewritten. The code of the functions keeps its names: it is in archives of its own.

The assembly needs Node and the environment of the checkout (`make setup console`). It is made again only if its sources have changed. A
source distribution carries the result.
"""

import ast
import hashlib
import json
import os
import re
import shutil
import subprocess
import zipfile
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PACKAGE, ENGINE = "punctual_server", "_engine"
PARTS = (  # of the checkout: folders with all their modules, or single modules
    "scheduler",
    "lambdas",
    "local",
    "lab/__init__.py",
    "lab/world",
    "infra/__init__.py",
    "infra/bytecode.py",
    "infra/parameters.py",
    "ops/__init__.py",
    "ops/origin_secret.py",
    "ops/publish.py",
)
NAMES = {part.partition("/")[0] for part in PARTS}
SOURCES = ("app.py", "cdk.json", "package-lock.json", "requirements.txt", "infra", "lambdas", "scheduler", "stages", "console/dist")
PORT = 61_947  # stands in the templates for the port of a run
ORIGIN_SECRET = 1  # the first version of a new stack
STANDS = re.compile(rf'"HTTPPort": {PORT}\b|http://[\w.]+:{PORT}\b')
SAME_DATE = (2020, 1, 1, 0, 0, 0)  # of the entries of archives: the same sources are the same wheel


class NotBuilt(Exception):
    """The package cannot be built. The message has the reason and the remedy."""


class Hook(BuildHookInterface[Any]):
    """Adds the package to a wheel, and to a source distribution as its sources."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        root = Path(self.root)
        ready = root / "src" / PACKAGE
        if not (ready / ENGINE).is_dir():  # not in a source distribution
            ready = root / "build" / PACKAGE
            write(root.parent, ready)
        target = PACKAGE if self.target_name == "wheel" else f"src/{PACKAGE}"
        build_data["force_include"][str(ready)] = target


def write(repository: Path, package: Path) -> None:
    """Write the whole package into this folder."""
    assembly = package.parent / "assembly"
    of_sources = fingerprint(repository, SOURCES)
    if not _has(assembly, of_sources):
        shutil.rmtree(assembly, ignore_errors=True)
        assemble(synthesize(repository, package.parent / "cdk.out"), repository / "console" / "dist", assembly, of_sources)
    shutil.rmtree(package, ignore_errors=True)
    for path, name in modules(repository):
        target = package / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(rewritten(path.read_text(), name))
    (package / ENGINE / "__init__.py").write_text('"""The packages of the checkout, by longer names."""\n')
    shutil.copytree(assembly, package / "assembly")


def _has(assembly: Path, of_sources: str) -> bool:
    manifest = assembly / "assembly.json"
    return manifest.exists() and json.loads(manifest.read_text())["sources"] == of_sources


def modules(repository: Path) -> Iterator[tuple[Path, str]]:
    """Return each module that the package gets, and its path in the package."""
    own = repository / "server" / "src" / PACKAGE
    for path in sorted(own.rglob("*.py")):
        yield path, path.relative_to(own).as_posix()
    for part in PARTS:
        found = repository / part
        for path in sorted(found.rglob("*.py")) if found.is_dir() else [found]:
            yield path, f"{ENGINE}/{path.relative_to(repository).as_posix()}"


def rewritten(source: str, name: str) -> str:
    """Return the source with its imports of the engine's packages changed to their longer names. Raises NotBuilt if one cannot be."""
    lines = source.splitlines(keepends=True)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.level == 0 and _of_engine(node.module or ""):
            _lengthen(lines, node, "from", node.module or "")
        elif isinstance(node, ast.Import) and any(_of_engine(alias.name) for alias in node.names):
            alias = node.names[0]
            if len(node.names) > 1 or alias.asname is None:
                raise NotBuilt(f"{name}, line {node.lineno}: this import binds the short name. Write: from package import module")
            _lengthen(lines, node, "import", alias.name)
        elif isinstance(node, ast.Call) and node.args and isinstance(named := node.args[0], ast.Constant):
            is_import = getattr(node.func, "attr", getattr(node.func, "id", "")) in ("import_module", "__import__")
            if is_import and _of_engine(str(named.value)):
                raise NotBuilt(f"{name}, line {node.lineno}: this import has the short name. Write: from package import module")
    return "".join(lines)


def _of_engine(module: str) -> bool:
    return module.partition(".")[0] in NAMES


def _lengthen(lines: list[str], node: ast.stmt, word: str, module: str) -> None:
    line = lines[node.lineno - 1].encode()
    before, statement = line[: node.col_offset].decode(), line[node.col_offset :].decode()
    lines[node.lineno - 1] = before + re.sub(rf"^{word}\s+{re.escape(module)}\b", f"{word} {PACKAGE}.{ENGINE}.{module}", statement, count=1)


def fingerprint(folder: Path, parts: tuple[str, ...]) -> str:
    """Return a hash of all files in these parts of the folder, with their names."""
    digest = hashlib.sha256(b"1")  # the form of the assembly
    for part in parts:
        found = folder / part
        for path in sorted(found.rglob("*")) if found.is_dir() else [found]:
            if path.is_file() and "__pycache__" not in path.parts:
                digest.update(f"\0{path.relative_to(folder).as_posix()}\0".encode())
                digest.update(path.read_bytes())
    return digest.hexdigest()


def synthesize(repository: Path, folder: Path) -> Path:
    """Synthesize the templates of the local stage into the folder, and return it. Raises NotBuilt."""
    python, cdk = repository / ".venv" / "bin" / "python", repository / "node_modules" / ".bin" / "cdk"
    if not python.exists() or not cdk.exists() or not (repository / "console" / "dist" / "index.html").exists():
        raise NotBuilt("The templates and the console need the environment of the checkout: make setup console")
    context = (f"endpoint_port={PORT}", f"origin_secret_version={ORIGIN_SECRET}", "stage=local")
    options = [word for each in context for word in ("-c", each)]
    shutil.rmtree(folder, ignore_errors=True)
    command = [str(cdk), "synth", "--quiet", "--no-notices", "--app", f"{python} app.py", "--output", str(folder), *options]
    variables = {
        "CDK_DEFAULT_ACCOUNT": "000000000000",
        "CDK_DEFAULT_REGION": "us-east-1",
        "CDK_DISABLE_CLI_TELEMETRY": "true",
        "CI": "true",
    }
    done = subprocess.run(command, cwd=repository, env={**os.environ, **variables}, capture_output=True, text=True)
    if done.returncode:
        raise NotBuilt(f"The templates could not be synthesized:\n{done.stdout}{done.stderr}")
    return folder


def assemble(synthesized: Path, console: Path, folder: Path, of_sources: str) -> None:
    """Write what `local/assembled.py` deploys: a manifest, a template for each stack, the archives of the functions, the console."""
    artifacts = json.loads((synthesized / "manifest.json").read_text())["artifacts"]
    named = {name for name, artifact in artifacts.items() if artifact["type"] == "aws:cloudformation:stack"}
    stacks = list(TopologicalSorter({name: named & {*artifacts[name].get("dependencies", ())} for name in sorted(named)}).static_order())
    folder.mkdir(parents=True)
    archives, buckets = set[str](), set[str]()
    for stack in stacks:
        template = (synthesized / artifacts[stack]["properties"]["templateFile"]).read_text()
        if template.count(str(PORT)) != len(STANDS.findall(template)):
            raise NotBuilt(f"The port {PORT} is at an unexpected place in the template of {stack}")
        (folder / f"{stack}.json").write_text(template)
        for asset in json.loads((synthesized / f"{stack}.assets.json").read_text())["files"].values():
            (place,) = asset["destinations"].values()
            buckets.add(place["bucketName"].replace("${AWS::AccountId}", "000000000000").replace("${AWS::Region}", "us-east-1"))
            if asset["source"]["packaging"] == "zip":
                archive(synthesized / asset["source"]["path"], folder / place["objectKey"])
                archives.add(place["objectKey"])
            elif asset["source"]["path"] != artifacts[stack]["properties"]["templateFile"]:
                raise NotBuilt(f"{stack} has an asset that is neither a function nor its template: {asset['source']}")
    (bucket,) = buckets
    shutil.copytree(console, folder / "console")
    manifest = {"stacks": stacks, "archives": sorted(archives), "bucket": bucket, "port": PORT, "origin_secret": ORIGIN_SECRET}
    manifest |= {"fingerprint": fingerprint(folder, (".",)), "sources": of_sources}
    (folder / "assembly.json").write_text(json.dumps(manifest, indent=2) + "\n")


def archive(folder: Path, target: Path) -> None:
    """Write an archive of the modules in the folder, without bytecode: another Python than this one will run them."""
    with zipfile.ZipFile(target, "w") as packed:
        for path in sorted(folder.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                entry = zipfile.ZipInfo(path.relative_to(folder).as_posix(), SAME_DATE)
                entry.external_attr = 0o644 << 16
                packed.writestr(entry, path.read_bytes(), zipfile.ZIP_DEFLATED)
