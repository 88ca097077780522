"""The assemblies that runs of this folder share: each is synthesized once for its sources and its port."""

from pathlib import Path

from local.deploy import keep


def an_assembly(folder: Path, says: str) -> Path:
    (folder / "asset.1").mkdir(parents=True)
    (folder / "asset.1/index.py").write_text(says)
    (folder / "manifest.json").write_text("{}")
    return folder


def test_an_assembly_is_kept_whole_and_those_of_other_sources_go(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    keep(an_assembly(tmp_path / "old", "old"), kept / "aaaa-4566-1")
    keep(an_assembly(tmp_path / "one", "one"), kept / "bbbb-4566-1")
    keep(an_assembly(tmp_path / "two", "two"), kept / "bbbb-4567-1")
    assert sorted(path.name for path in kept.iterdir()) == ["bbbb-4566-1", "bbbb-4567-1"]
    assert (kept / "bbbb-4566-1/asset.1/index.py").read_text() == "one"


def test_a_slower_run_changes_nothing(tmp_path: Path) -> None:
    kept = tmp_path / "kept/bbbb-4566-1"
    for says in ("first", "second"):
        keep(an_assembly(tmp_path / says, says), kept)
    assert (kept / "asset.1/index.py").read_text() == "first"
    assert [path.name for path in kept.parent.iterdir()] == [kept.name]
