"""`make parity`."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.parity.differences import counted, judge, read, table
from tests.parity.implementations import BINARY, FOLDER, NAMES, ROOT

MISSING = "dynoxide was left out: its npm package has a binary for Linux on x64 only, or the package registry did not answer."


def install() -> None:
    """Install the binary by its lock into a folder of its own, if this machine can run it."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copy(Path(__file__).parent / "node" / name, FOLDER)
    if not BINARY.exists():
        subprocess.run(["npm", "ci", "--no-audit", "--no-fund", "--silent"], cwd=FOLDER, check=False)


def run(name: str) -> Path:
    """Run the contract tests on an implementation; the failures are in the report."""
    report, log = FOLDER / f"{name}.xml", FOLDER / f"{name}.log"
    report.unlink(missing_ok=True)
    command = [sys.executable, "-m", "pytest", "-p", "tests.parity.implementations", "tests/contract", "--junitxml", str(report)]
    command += ["-W", "ignore::pytest.PytestUnraisableExceptionWarning"]  # of a failed test, reported in whichever test runs later
    with log.open("w") as output:
        done = subprocess.run(command, cwd=ROOT, env=os.environ | {"PARITY": name}, stdout=output, stderr=output, check=False)
    if done.returncode not in (0, 1):  # 1: tests failed
        sys.exit(f"The tests on {name} did not run: {log}")
    return report


def main() -> int:
    install()
    names = [name for name in NAMES if name != "dynoxide" or BINARY.exists()]
    outcomes = {}
    for name in names:
        print(f"Running the contract tests on {name} ...", flush=True)
        outcomes[name] = read(run(name))
    found = counted(outcomes)
    print(f"\n{table(found)}")
    if "dynoxide" not in names:
        print(MISSING)
    faults = judge(found)
    for fault in faults:
        print(fault, file=sys.stderr)
    if faults:
        print(
            f"The failures are in {FOLDER}/*.log. A difference that is right has its reason in tests/parity/differences.py.",
            file=sys.stderr,
        )
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
