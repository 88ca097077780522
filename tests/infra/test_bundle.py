"""The code asset. The first real bundling downloads wheels if the machine has none cached; later ones take half a second."""

import os
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from importlib.util import cache_from_source
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk.assertions import Annotations, Match

from infra import bundle, bytecode
from infra.settings import settings_for
from infra.stack import PunctualStack
from tests.infra.conftest import FLAGS, ROOT, app


def test_the_asset_hash_covers_only_the_sources_and_the_lock(tmp_path: Path) -> None:
    stack = cdk.Stack(cdk.App(outdir=str(tmp_path)), "only-an-asset")
    # Staged without bundling: a copy of exactly the files that the hash covers.
    cdk.AssetStaging(stack, "Code", source_path=str(ROOT), exclude=bundle.ALL_BUT_SOURCES, ignore_mode=cdk.IgnoreMode.GIT)
    (folder,) = tmp_path.glob("asset.*")
    assert {path.name for path in folder.iterdir()} == {"lambdas", "scheduler"}
    assert (folder / "lambdas" / "requirements.txt").read_bytes() == bundle.LOCK.read_bytes()
    for source in bundle.SOURCES:
        expected = {path.relative_to(ROOT) for path in (ROOT / source).rglob("*.py") if not path.is_relative_to(ROOT / bundle.NOT_SHIPPED)}
        assert {path.relative_to(folder) for path in (folder / source).rglob("*.py")} == expected
    assert not list(folder.rglob("__pycache__"))


@pytest.mark.long
def test_the_bundle_for_aws_has_sources_and_locked_wheels_for_lambda(tmp_path: Path) -> None:
    bundle.bundle_into(tmp_path, host_packages=False, compiler=None)
    assert (tmp_path / "lambdas" / "_settings.py").exists()
    assert (tmp_path / "scheduler" / "model" / "job.py").exists()
    assert not (tmp_path / bundle.NOT_SHIPPED).exists()
    locked = re.findall(r"^([a-z0-9-]+)==(\S+)", bundle.LOCK.read_text(), re.M)
    installed = {path.name for path in tmp_path.glob("*.dist-info")}
    assert installed == {f"{name.replace('-', '_')}-{version}.dist-info" for name, version in locked}
    assert list(tmp_path.glob("pydantic_core/*cpython-313-aarch64-linux-gnu.so"))
    assert not list(tmp_path.rglob("*.pyc"))


@pytest.mark.long
def test_the_bundle_for_aws_has_bytecode_of_its_own_python(tmp_path: Path) -> None:
    try:
        compiler = bytecode.compiler(bundle.VERSION)
    except bytecode.NoCompiler as error:
        pytest.skip(str(error))
    bundle.bundle_into(tmp_path, host_packages=False, compiler=compiler)
    sources = {path.relative_to(tmp_path) for path in tmp_path.rglob("*.py")}
    compiled = {path.relative_to(tmp_path) for path in tmp_path.rglob("*.pyc")}
    assert compiled == {path.parent / "__pycache__" / f"{path.stem}.cpython-313.pyc" for path in sources} and len(sources) > 900
    assert {(tmp_path / path).read_bytes()[:8] for path in compiled} == {b"\xf3\x0d\r\n\x01\x00\x00\x00"}  # 3.13, unchecked hash
    assert sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file()) < 75_000_000  # Lambda takes 250 MB


@pytest.mark.long
def test_bytecode_of_another_python_fails_the_bundle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(bytecode.MAGIC, bundle.VERSION, 4711)
    with pytest.raises(bundle.BundleError, match=r"not for Python 3\.13, which runs the functions: its magic number is 4711, not \d+"):
        bundle.bundle_into(tmp_path, host_packages=False, compiler=sys.executable)


@pytest.mark.long
def test_the_bundle_for_the_local_aws_is_only_compiled_sources(tmp_path: Path) -> None:
    bundle.bundle_into(tmp_path, host_packages=True, compiler=None)
    assert {path.name for path in tmp_path.iterdir()} == {"lambdas", "scheduler"}
    sources = {path.relative_to(tmp_path) for path in tmp_path.rglob("*.py")}
    compiled = {path.relative_to(tmp_path) for path in tmp_path.rglob("*.pyc")}
    assert {Path(cache_from_source(str(path))) for path in sources} == compiled


@pytest.mark.long
def test_every_user_can_read_a_bundle_built_under_a_strict_umask(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        (tmp_path / "asset").mkdir()
        bundle.bundle_into(tmp_path / "asset", host_packages=True, compiler=None)
    finally:
        os.umask(before)
    for path in (tmp_path / "asset", *(tmp_path / "asset").rglob("*")):
        assert path.stat().st_mode & 0o055 == (0o055 if path.is_dir() else 0o044), path


def nothing_compiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make this a machine without the functions' Python, on which uv cannot download one."""
    monkeypatch.setattr(bundle, "VERSION", "3.99")  # no machine has it
    run: Callable[..., Any] = subprocess.run

    def fake(command: Sequence[str], **options: Any) -> Any:
        if "uv" not in command:
            return run(command, **options)
        return subprocess.CompletedProcess(command, 2, "", "error: no route to host\n")

    monkeypatch.setattr(subprocess, "run", fake)


def test_a_build_without_a_compiler_fails_with_the_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nothing_compiles(monkeypatch)
    stack = cdk.Stack(cdk.App(outdir=str(tmp_path)), "compiled")
    with pytest.raises(bundle.BundleError, match=r"no route to host.*Install Python 3\.99.*make deploy BYTECODE_OPTIONAL=1"):
        bundle.code(stack, host_packages=False, bytecode_optional=False)


@pytest.mark.long  # it bundles all packages
def test_optional_bytecode_that_nothing_can_compile_is_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nothing_compiles(monkeypatch)
    stack = cdk.Stack(cdk.App(outdir=str(tmp_path)), "not-compiled")
    bundle.code(stack, host_packages=False, bytecode_optional=True)
    Annotations.from_stack(stack).has_warning("*", Match.string_like_regexp("bundled without bytecode, .*no route to host"))


@pytest.mark.parametrize("settings", [{"host_packages": True}, {"host_packages": False, "stacks": []}])
def test_no_compiler_is_wanted_where_nothing_is_compiled_for_aws(
    settings: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nothing_compiles(monkeypatch)
    context = {"aws:cdk:bundling-stacks": settings["stacks"]} if "stacks" in settings else {}
    stack = cdk.Stack(cdk.App(outdir=str(tmp_path), context=context), "templates-only")
    bundle.code(stack, host_packages=settings["host_packages"], bytecode_optional=False)


def test_a_lock_that_cannot_be_installed_fails_with_its_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "requirements.txt"
    broken.write_text("six==1.17.0\n")  # without its hash
    monkeypatch.setattr(bundle, "LOCK", broken)
    with pytest.raises(bundle.BundleError, match="six"):
        bundle.bundle_into(tmp_path / "out", host_packages=False, compiler=None)


@pytest.mark.long
def test_synth_bundles_once_for_all_functions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Path] = []

    def record(folder: Path, *, host_packages: bool, compiler: str | None) -> None:
        calls.append(folder)
        (folder / "marker").touch()

    monkeypatch.setattr(bundle, "bundle_into", record)
    PunctualStack(made := app(context=FLAGS, outdir=str(tmp_path)), settings_for("prod", bytecode_optional=True))
    made.synth()
    assert len(calls) == 1
    (asset,) = tmp_path.glob("asset.*")
    assert (asset / "marker").exists()


@pytest.mark.long
def test_the_bundle_for_another_machine_is_another_asset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One without bytecode is another one, too: a deployment after Python was installed would not build it again."""
    monkeypatch.setattr(bundle, "bundle_into", lambda folder, *, host_packages, compiler: (folder / "marker").touch())

    def asset(stage: str, place: str) -> str:
        PunctualStack(made := app(context=FLAGS, outdir=str(tmp_path / place)), settings_for(stage, bytecode_optional=True))
        made.synth()
        return next((tmp_path / place).glob("asset.*")).name

    with monkeypatch.context() as patched:
        patched.setattr(bundle, "VERSION", "{}.{}".format(*sys.version_info[:2]))  # the running Python compiles
        dev, prod, local = (asset(stage, stage) for stage in ("dev", "prod", "local"))
    nothing_compiles(monkeypatch)
    assert dev == prod
    assert len({dev, local, asset("prod", "without")}) == 3
