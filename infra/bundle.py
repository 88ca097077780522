"""The one code asset that all functions share: `lambdas/`, `scheduler/` and the locked dependencies, built without docker.

On AWS the asset includes boto3 (10 MB of zip): Lambda provides one, but AWS changes its version, and that version is not the tested one.
For the local AWS the asset contains no dependencies, and the sources are compiled: the local AWS unpacks and imports the bundle for every
executor that it starts, and its interpreter has the locked versions already. A hundred executors start in seconds instead of half a minute.
"""

import compileall
import py_compile
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import jsii
from aws_cdk import aws_lambda as lambda_

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ("lambdas", "scheduler")
# Anchored patterns in git mode: other patterns for "only these folders" gave an empty asset.
NOT_SHIPPED = "scheduler/storage/memory"  # for tests and the simulation only
ALL_BUT_SOURCES = ["/*", *(f"!/{folder}" for folder in SOURCES), f"/{NOT_SHIPPED}", "__pycache__"]
LOCK = ROOT / "lambdas" / "requirements.txt"
RUNTIME = lambda_.Runtime.PYTHON_3_13

_AWS_PLATFORM = ("--python-platform", "aarch64-manylinux2014", "--python-version", "3.13")
_NEVER_SHIPPED = (".lock", "bin")  # files that uv leaves in a target folder


class BundleError(Exception):
    """The dependencies could not be installed; the message contains the installer's errors."""


@jsii.implements(cdk.ILocalBundling)
class LocalBundling:
    """Fills the asset's folder. It never falls back to docker: it succeeds or raises."""

    def __init__(self, host_packages: bool) -> None:
        self._host_packages = host_packages

    def try_bundle(self, output_dir: str, *, image: cdk.DockerImage, **options: Any) -> bool:
        bundle_into(Path(output_dir), host_packages=self._host_packages)
        return True


def code(host_packages: bool) -> lambda_.Code:
    """The asset. Its hash covers the sources, the lock and the target machine; tests and infra do not change it."""
    return lambda_.Code.from_asset(
        str(ROOT),
        exclude=ALL_BUT_SOURCES,
        ignore_mode=cdk.IgnoreMode.GIT,
        asset_hash_type=cdk.AssetHashType.SOURCE,
        bundling=cdk.BundlingOptions(
            image=RUNTIME.bundling_image,  # required by the interface, never pulled
            command=["host"] if host_packages else list(_AWS_PLATFORM),  # never run, but part of the hash
            local=LocalBundling(host_packages),
        ),
    )


def bundle_into(folder: Path, *, host_packages: bool) -> None:
    """Install the locked dependencies, unless the host has them, and copy the sources. Raises BundleError."""
    if not host_packages:
        _install(folder)
    for source in SOURCES:
        shutil.copytree(ROOT / source, folder / source, ignore=shutil.ignore_patterns("__pycache__", Path(NOT_SHIPPED).name))
        if host_packages:  # not for AWS, whose interpreter may be another version
            # Unchecked hashes: unpacking changes the time of every file, so bytecode with timestamps would be stale.
            compileall.compile_dir(folder / source, quiet=1, invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)


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
