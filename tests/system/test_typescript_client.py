"""The TypeScript client as a user installs it: the code of its guide, and its receiver, against the stack with the compiler's types."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from punctual import Punctual

from infra.settings import LOCAL
from local.home import REPOSITORY
from tests.documented_commands import BLOCK
from tests.system.conftest import HANG_S, System

CLIENT, CONSOLE = REPOSITORY / "client-ts", REPOSITORY / "console"
GUIDE = (REPOSITORY / "docs/guides/typescript.md").read_text().partition("## Generate a client\n")[0]
SECRET = "whsec_" + "c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0"
SIGNED = """
import { Punctual } from 'punctual-client';

const punctual = new Punctual();
const http = { method: 'POST', url: process.argv[2]!, body: { order: 17 }, signing_secret: 'typescript-hook' } as const;
const { id } = await punctual.jobs.create({ http });
console.log((await punctual.jobs.wait(id, { timeoutSeconds: 600 })).status);
"""
STRICT = ["--strict", "--module", "nodenext", "--target", "es2022", "--types", "node"]


def run(command: list[str], folder: Path, **environment: str) -> str:
    path = f"{CONSOLE / 'node_modules/.bin'}:{os.environ['PATH']}"
    full = os.environ | {"PATH": path} | environment
    done = subprocess.run(command, cwd=folder, env=full, capture_output=True, text=True, timeout=HANG_S)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the programs, compiled with the packed client among its packages."""
    folder = tmp_path_factory.mktemp("app")
    run(["npm", "pack", "--silent", "--pack-destination", str(folder)], CLIENT)
    (packed,) = folder.glob("*.tgz")
    packages = folder / "node_modules"
    installed = packages / "punctual-client"
    installed.mkdir(parents=True)
    run(["tar", "--extract", "--file", str(packed), "--strip-components", "1"], installed)
    (packages / "@types").symlink_to(CONSOLE / "node_modules/@types")
    (folder / "package.json").write_text(json.dumps({"type": "module"}))
    blocks = GUIDE.split("```ts\n")[1:]
    programs = {
        "guide": "\n".join(block.partition("```")[0] for block in blocks),
        "receiver": (CLIENT / "examples/receiver.ts").read_text(),
        "signed": SIGNED,
    }
    for name, code in programs.items():
        (folder / f"{name}.ts").write_text(code)
    (folder / "node_modules/undici-types").symlink_to(CONSOLE / "node_modules/undici-types")
    run(["tsc", *STRICT, *(f"{name}.ts" for name in programs)], folder)
    return folder


@pytest.fixture
def reader(system: System, monkeypatch: pytest.MonkeyPatch) -> Punctual:
    """A user who follows the guide, with the stack in the environment."""
    name = f"reader-{os.urandom(4).hex()}"
    for variable, value in {"URL": system.address, "USERNAME": name, "PASSWORD": system.create_user(name)}.items():
        monkeypatch.setenv(f"PUNCTUAL_{variable}", value)
    return Punctual()


def test_the_package_has_what_it_exports_and_no_sources(app: Path) -> None:
    folder = app / "node_modules/punctual-client"
    names = {path.relative_to(folder).parts[0] for path in folder.iterdir()}
    assert names == {"dist", "package.json", "README.md", "LICENSE"}
    exported = json.loads((folder / "package.json").read_text())["exports"]["."].values()
    assert [each for each in exported if not (folder / each).is_file()] == []


def test_the_code_of_the_typescript_guide_runs(app: Path, reader: Punctual) -> None:
    lines = run(["node", "guide.js"], app).splitlines()
    printed = {line.partition(" ")[0]: line.partition(" ")[2] for line in lines}
    first = reader.jobs.get(printed["created"].split()[0])
    assert (first.status, first.payload["url"]) == ("scheduled", "https://example.com/orders/17/expire")
    assert reader.jobs.get(key="order:18 expiry").status == "cancelled"
    assert printed["accepted"] == "1500 []"
    assert printed["done"].startswith("succeeded ")
    assert printed["task"].startswith("created 20") and [task.key for task in reader.tasks.list()] == ["nightly-report"]
    assert printed["monitor"] == "backup" and printed["I"] == f"am {reader.me().id}"
    assert printed["refused"].startswith("max_attempts ")
    upcoming = list(reader.jobs.list(upcoming=True))
    assert len([job for job in upcoming if job.type == "log" and job.payload["message"].startswith("number ")]) == 1500
    assert [job.scheduled_at.year for job in upcoming if job.tags == ("orders",)] == [2030]


@pytest.fixture
def receiver(app: Path) -> Iterator["subprocess.Popen[str]"]:
    environment = os.environ | {"WEBHOOK_SECRET": SECRET, "PORT": "0"}
    with subprocess.Popen(["node", "receiver.js"], cwd=app, env=environment, stdout=subprocess.PIPE, text=True) as child:
        yield child
        child.terminate()


def test_the_receiver_verifies_the_call_of_a_job(app: Path, system: System, reader: Punctual, receiver: "subprocess.Popen[str]") -> None:
    system.aws("secretsmanager").create_secret(Name=f"{LOCAL.secret_prefix}{reader.me().id}/typescript-hook", SecretString=SECRET)
    assert receiver.stdout is not None
    url = f"http://127.0.0.1:{receiver.stdout.readline().split()[-1]}/hook"
    assert run(["node", "signed.js", url], app) == "succeeded\n"
    assert httpx.post(url, content=b'{"order":17}').status_code == 401
    assert json.loads(receiver.stdout.readline().removeprefix("work: ")) == {"order": 17}
    assert receiver.stdout.readline().startswith("refused: the request is not signed")


def test_the_guide_installs_the_packed_file() -> None:
    (install,) = (found["code"] for found in BLOCK.finditer(GUIDE))
    assert "npm ci && npm pack" in install and "npm install ./punctual/client-ts/" in install
