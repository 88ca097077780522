"""The one code asset that all functions share: `lambdas/`, `scheduler/` and the locked dependencies, built without docker.

On AWS the asset includes boto3 (10 MB of zip): Lambda provides one, but AWS changes its version, and that version is not the tested one.
For the local AWS the asset contains no dependencies: its interpreter already has the locked versions.

Everything is compiled, by the Python that will run it: AWS starts functions from a read-only folder, and the local AWS unpacks and imports
the bundle for every executor that it starts. A hundred executors start in seconds instead of half a minute.
"""

import shutil
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import jsii
from aws_cdk import aws_lambda as lambda_

from infra import bytecode

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ("lambdas", "scheduler")
# Anchored patterns in git mode: other patterns for "only these folders" gave an empty asset.
NOT_SHIPPED = "scheduler/storage/memory"  # for tests and the simulation only
ALL_BUT_SOURCES = ["/*", *(f"!/{folder}" for folder in SOURCES), f"/{NOT_SHIPPED}", "__pycache__"]
LOCK = ROOT / "lambdas" / "requirements.txt"
RUNTIME = lambda_.Runtime.PYTHON_3_13
VERSION = RUNTIME.name.removeprefix("python")

_AWS_PLATFORM = ("--python-platform", "aarch64-manylinux2014", "--python-version", VERSION)
_NEVER_SHIPPED = (".lock", "bin")  # files that uv leaves in a target folder


class BundleError(Exception):
    """The asset could not be built; the message contains the error of the installer or the compiler, and the remedy."""


@jsii.implements(cdk.ILocalBundling)
class LocalBundling:
    """Fills the asset's folder. It never falls back to docker: it succeeds or raises."""

    def __init__(self, *, host_packages: bool, compiler: str | None) -> None:
        self._host_packages = host_packages
        self._compiler = compiler

    def try_bundle(self, output_dir: str, *, image: cdk.DockerImage, **options: Any) -> bool:
        bundle_into(Path(output_dir), host_packages=self._host_packages, compiler=self._compiler)
        return True


def code(stack: cdk.Stack, *, host_packages: bool, bytecode_optional: bool) -> lambda_.Code:
    """The asset. Its hash covers the sources, the lock, the target machine and whether it is compiled; tests and infra do not change it.

    If no Python can compile for AWS, `bytecode_optional` adds a warning to the stack; otherwise that raises BundleError.
    """
    compiler = _compiler(stack, bytecode_optional) if stack.bundling_required and not host_packages else None
    built = [*_AWS_PLATFORM, "with bytecode" if compiler else "without bytecode"]
    return lambda_.Code.from_asset(
        str(ROOT),
        exclude=ALL_BUT_SOURCES,
        ignore_mode=cdk.IgnoreMode.GIT,
        asset_hash_type=cdk.AssetHashType.SOURCE,
        bundling=cdk.BundlingOptions(
            image=RUNTIME.bundling_image,  # required by the interface, never pulled
            command=["host"] if host_packages else built,  # never run, but part of the hash
            local=LocalBundling(host_packages=host_packages, compiler=compiler),
        ),
    )


def bundle_into(folder: Path, *, host_packages: bool, compiler: str | None) -> None:
    """Install the locked dependencies, unless the host has them, copy the sources, compile all, and make it readable for everybody.

    `compiler`: the Python that compiles for AWS; None leaves the bytecode out. The host compiles for itself. Raises BundleError.
    """
    if not host_packages:
        _install(folder)
    for source in SOURCES:
        shutil.copytree(ROOT / source, folder / source, ignore=shutil.ignore_patterns("__pycache__", Path(NOT_SHIPPED).name))
    try:
        if host_packages:
            bytecode.compile_all(folder, sys.executable)
        elif compiler is not None:
            bytecode.compile_all(folder, compiler)
            bytecode.check(folder, VERSION)
    except bytecode.BadBytecode as error:
        raise BundleError(str(error)) from error
    _open_to_all(folder)


def _compiler(stack: cdk.Stack, optional: bool) -> str | None:
    """Return the Python that compiles for AWS; None if there is none and the bytecode is `optional`. Raises BundleError."""
    try:
        return bytecode.compiler(VERSION)
    except bytecode.NoCompiler as error:
        if not optional:
            raise BundleError(
                f"{error} To bundle without bytecode, which makes cold starts slower: make deploy BYTECODE_OPTIONAL=1"
            ) from error
        cdk.Annotations.of(stack).add_warning_v2("punctual:bytecode", f"bundled without bytecode, which makes cold starts slower: {error}")
        return None


def _open_to_all(folder: Path) -> None:
    """Let every user read the files, as `chmod -R a+rX` does: Lambda runs the code as another user, and the zip keeps the modes."""
    for path in (folder, *folder.rglob("*")):
        mode = path.stat().st_mode
        path.chmod(stat.S_IMODE(mode) | (0o555 if path.is_dir() or mode & 0o111 else 0o444))


def _install(folder: Path) -> None:
    # Wheels only: a dependency without a wheel for Lambda fails here, not at its first import on AWS.
    command = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--python", sys.executable, "--target", str(folder)]
    choice = ["--only-binary", ":all:", "--no-deps", "--require-hashes", "-r", str(LOCK)]
    done = subprocess.run([*command, *_AWS_PLATFORM, *choice], capture_output=True, text=True)
    if done.returncode:
        raise BundleError(f"the dependencies of the functions could not be installed:\n{done.stderr.strip()}")
    for name in _NEVER_SHIPPED:
        _remove(folder / name)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
