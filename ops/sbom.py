"""`make sbom`: software bills of materials (CycloneDX) of what a stage runs, from the locks: the functions and the console.

The same locks give the same files.
"""

import base64
import json
import subprocess
import sys
from typing import Any
from urllib.parse import quote

from local.failure import Trouble, exit_code
from local.home import REPOSITORY

FOLDER = REPOSITORY / "sbom"
TOOL = "cyclonedx-bom==7.5.0"
FUNCTIONS, CONSOLE = "lambdas/requirements.txt", "console/package-lock.json"
CHANCE = ("serialNumber", "timestamp")  # differ from run to run, and CycloneDX requires neither


def main() -> int:
    FOLDER.mkdir(exist_ok=True)
    _write("functions", _of_functions())
    _write("console", of_console(json.loads((REPOSITORY / CONSOLE).read_text())))
    return 0


def _of_functions() -> Any:
    command = [sys.executable, "-m", "uv", "tool", "run", "--from", TOOL, "cyclonedx-py", "requirements", FUNCTIONS]
    command += ["--output-reproducible", "--output-format", "JSON"]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Trouble(f"`{TOOL}` could not read {FUNCTIONS}; it is installed from the network. {done.stderr.strip()[-500:]}")
    return json.loads(done.stdout)


def of_console(lock: Any) -> dict[str, Any]:
    """The packages of a lock of npm that the console contains. `npm sbom --omit dev` leaves out those that development needs, too."""
    packages = {path: package for path, package in lock["packages"].items() if path and not package.get("dev")}
    components = [_component(path.rpartition("node_modules/")[2], package) for path, package in packages.items()]
    once = {component["purl"]: component for component in components}
    return {"bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1, "components": [once[purl] for purl in sorted(once)]}


def _component(name: str, package: Any) -> dict[str, Any]:
    component = {"type": "library", "name": name, "version": package["version"], "purl": f"pkg:npm/{quote(name)}@{package['version']}"}
    content = base64.b64decode(package["integrity"].removeprefix("sha512-")).hex()
    licence = {"licenses": [{"expression": package["license"]}]} if "license" in package else {}
    return component | {"hashes": [{"alg": "SHA-512", "content": content}]} | licence


def _write(name: str, bill: Any) -> None:
    path = FOLDER / f"{name}.cdx.json"
    path.write_text(json.dumps(steady(bill), indent=2, sort_keys=True) + "\n")
    print(f"{path.relative_to(REPOSITORY)}: {len(bill.get('components', []))} components")


def steady(bill: Any) -> Any:
    """The bill without what differs from run to run."""
    if isinstance(bill, dict):
        return {name: steady(value) for name, value in bill.items() if name not in CHANCE}
    return [steady(each) for each in bill] if isinstance(bill, list) else bill


if __name__ == "__main__":
    raise SystemExit(exit_code(main))
