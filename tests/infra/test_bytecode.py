"""The compiler for AWS, and the check that it was the right version. Only `uv` is a fake here; the interpreters are real."""

import importlib.util
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from infra import bytecode

OWN = "{}.{}".format(*sys.version_info[:2])
OWN_MAGIC = int.from_bytes(importlib.util.MAGIC_NUMBER[:2], "little")
OTHER = "3.99"  # no machine has it

Answer = tuple[int, str, str]  # exit code, output, errors
Uv = Callable[[Sequence[str], dict[str, str]], Answer]
Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def uv(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[Uv], None]:
    """Replaces the runs of `uv python ...`; other processes run as usual."""
    monkeypatch.setattr(bytecode, "INSTALLED", tmp_path / "pythons")
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    run: Run = subprocess.run

    def answer(uv: Uv) -> None:
        def fake(command: Sequence[str], **options: Any) -> "subprocess.CompletedProcess[str]":
            if "uv" not in command:
                return run(command, **options)
            code, output, errors = uv(command[command.index("python") + 1 :], options["env"])
            return subprocess.CompletedProcess(command, code, output, errors)

        monkeypatch.setattr(subprocess, "run", fake)

    return answer


def executable(path: Path) -> Path:
    path.parent.mkdir(parents=True)
    path.touch()
    return path


def refused(command: Sequence[str], environment: dict[str, str]) -> Answer:
    return 2, "", "error: nothing found\n  cause: no route to host\n"


def test_the_running_python_compiles_if_it_has_the_version(uv: Callable[[Uv], None]) -> None:
    uv(refused)
    assert bytecode.compiler(OWN) == sys.executable


def test_a_python_that_uv_finds_compiles(uv: Callable[[Uv], None]) -> None:
    uv(lambda command, environment: (0, "/opt/python3.99\n", "") if command[0] == "find" else refused(command, environment))
    assert bytecode.compiler(OTHER) == "/opt/python3.99"


def test_uv_also_looks_where_pyenv_and_earlier_builds_put_pythons(uv: Callable[[Uv], None], tmp_path: Path) -> None:
    places = [executable(tmp_path / "pythons" / "cpython-3.99.1-linux" / "bin" / "python3.99")]
    places += [executable(tmp_path / "pyenv" / "versions" / "3.99.0" / "bin" / "python3.99")]
    executable(tmp_path / "pyenv" / "versions" / "3.11.9" / "bin" / "python3.11")
    asked: list[str] = []

    def find(command: Sequence[str], environment: dict[str, str]) -> Answer:
        asked.append(environment["PATH"])
        return 0, "/opt/python3.99\n", ""

    uv(find)
    bytecode.compiler(OTHER)
    assert asked == [os.pathsep.join([os.environ["PATH"], *(str(place.parent) for place in places)])]


def test_uv_installs_the_missing_python_into_the_folder_of_the_project(uv: Callable[[Uv], None], tmp_path: Path) -> None:
    new = tmp_path / "pythons" / "cpython-3.99.2-linux" / "bin" / "python3.99"

    def install(command: Sequence[str], environment: dict[str, str]) -> Answer:
        if command[0] == "find":
            return 2, "", "error: none found"
        assert ("--install-dir", str(tmp_path / "pythons"), OTHER) == tuple(command[-3:]) and "--no-bin" in command
        executable(new)
        return 0, "", ""

    uv(install)
    assert bytecode.compiler(OTHER) == str(new)


def test_a_missing_python_is_reported_with_the_reason_and_what_to_do(uv: Callable[[Uv], None]) -> None:
    uv(refused)
    with pytest.raises(bytecode.NoCompiler, match=r"Python 3\.99 was found.*no route to host.*uv python install 3\.99.*then repeat"):
        bytecode.compiler(OTHER)


@pytest.fixture
def code(tmp_path: Path) -> Path:
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "module.py").write_text("def who():\n    return who.__code__.co_filename\n")
    return tmp_path


def compiled(code: Path) -> Path:
    return Path(importlib.util.cache_from_source(str(code / "package" / "module.py")))


def test_bytecode_of_the_wanted_version_is_accepted(code: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(bytecode.MAGIC, OWN, OWN_MAGIC)
    bytecode.compile_all(code, sys.executable)
    bytecode.check(code, OWN)


def test_the_magic_number_is_that_of_the_version() -> None:
    if OWN in bytecode.MAGIC:
        assert bytecode.MAGIC[OWN] == OWN_MAGIC
    assert OWN_MAGIC not in {number for version, number in bytecode.MAGIC.items() if version != OWN}


def test_bytecode_of_another_version_is_refused(code: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(bytecode.MAGIC, OTHER, 4711)
    bytecode.compile_all(code, sys.executable)
    with pytest.raises(bytecode.BadBytecode, match=rf"not for Python 3\.99.*its magic number is 4711, not {OWN_MAGIC}"):
        bytecode.check(code, OTHER)


def test_one_file_of_another_version_is_refused(code: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(bytecode.MAGIC, OWN, OWN_MAGIC)
    bytecode.compile_all(code, sys.executable)
    (code / "package" / "stray.pyc").write_bytes((4711).to_bytes(2, "little") + b"\r\n")
    with pytest.raises(bytecode.BadBytecode, match="4711"):
        bytecode.check(code, OWN)


def test_code_without_bytecode_is_refused(code: Path) -> None:
    with pytest.raises(bytecode.BadBytecode, match="3571, not none"):
        bytecode.check(code, "3.13")


def test_a_version_without_a_known_magic_number_is_refused(code: Path) -> None:
    with pytest.raises(bytecode.BadBytecode, match=r"lacks the magic number of Python 3\.99: add it to MAGIC"):
        bytecode.check(code, OTHER)


def test_a_module_that_cannot_be_compiled_fails_with_its_error(code: Path) -> None:
    (code / "package" / "broken.py").write_text("def broken(:\n")
    with pytest.raises(bytecode.BadBytecode, match=r"(?s)could not compile.*broken\.py.*SyntaxError"):
        bytecode.compile_all(code, sys.executable)


def test_bytecode_does_not_depend_on_file_times_and_names_its_place_on_aws(code: Path) -> None:
    bytecode.compile_all(code, sys.executable)
    assert compiled(code).read_bytes()[4:8] == (0b01).to_bytes(4, "little")  # PEP 552: hash-based and unchecked
    assert b"/var/task/package/module.py" in compiled(code).read_bytes()
