"""The code asset. The first real bundling downloads wheels if the machine has none cached; later ones take half a second."""

import re
from importlib.util import cache_from_source
from pathlib import Path

import aws_cdk as cdk
import pytest

from infra import bundle
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
    bundle.bundle_into(tmp_path, host_packages=False)
    assert (tmp_path / "lambdas" / "_settings.py").exists()
    assert (tmp_path / "scheduler" / "model" / "job.py").exists()
    assert not (tmp_path / bundle.NOT_SHIPPED).exists()
    locked = re.findall(r"^([a-z0-9-]+)==(\S+)", bundle.LOCK.read_text(), re.M)
    installed = {path.name for path in tmp_path.glob("*.dist-info")}
    assert installed == {f"{name.replace('-', '_')}-{version}.dist-info" for name, version in locked}
    assert list(tmp_path.glob("pydantic_core/*cpython-313-aarch64-linux-gnu.so"))
    assert not list(tmp_path.rglob("*.pyc"))


@pytest.mark.long
def test_the_bundle_for_the_local_aws_is_only_compiled_sources(tmp_path: Path) -> None:
    bundle.bundle_into(tmp_path, host_packages=True)
    assert {path.name for path in tmp_path.iterdir()} == {"lambdas", "scheduler"}
    sources = {path.relative_to(tmp_path) for path in tmp_path.rglob("*.py")}
    compiled = {path.relative_to(tmp_path) for path in tmp_path.rglob("*.pyc")}
    assert {Path(cache_from_source(str(path))) for path in sources} == compiled


@pytest.mark.long
def test_bytecode_for_the_local_aws_does_not_depend_on_file_times(tmp_path: Path) -> None:
    bundle.bundle_into(tmp_path, host_packages=True)
    header = Path(cache_from_source(str(tmp_path / "scheduler" / "model" / "job.py"))).read_bytes()[4:8]
    assert header == (0b01).to_bytes(4, "little")  # PEP 552: hash-based and unchecked


def test_a_lock_that_cannot_be_installed_fails_with_its_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "requirements.txt"
    broken.write_text("six==1.17.0\n")  # without its hash
    monkeypatch.setattr(bundle, "LOCK", broken)
    with pytest.raises(bundle.BundleError, match="six"):
        bundle.bundle_into(tmp_path / "out", host_packages=False)


@pytest.mark.long
def test_synth_bundles_once_for_all_functions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Path] = []

    def record(folder: Path, *, host_packages: bool) -> None:
        calls.append(folder)
        (folder / "marker").touch()

    monkeypatch.setattr(bundle, "bundle_into", record)
    PunctualStack(made := app(context=FLAGS, outdir=str(tmp_path)), settings_for("prod"))
    made.synth()
    assert len(calls) == 1
    (asset,) = tmp_path.glob("asset.*")
    assert (asset / "marker").exists()


@pytest.mark.long
def test_the_bundle_for_another_machine_is_another_asset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundle, "bundle_into", lambda folder, *, host_packages: (folder / "marker").touch())
    for stage in ("dev", "prod", "local"):
        PunctualStack(made := app(context=FLAGS, outdir=str(tmp_path / stage)), settings_for(stage))
        made.synth()
    dev, prod, local = ([path.name for path in (tmp_path / stage).glob("asset.*")] for stage in ("dev", "prod", "local"))
    assert dev == prod
    assert dev != local
