"""The files of a local AWS, the repair of its state, its port, and the clean-up after an earlier run."""

import fcntl
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from local import deploy, previous, process, server, state
from local.failure import Trouble
from local.home import Home


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "aws").create()


@pytest.fixture
def sleeper(home: Home) -> Iterator[subprocess.Popen[bytes]]:
    """Start a process that looks like a Lambda worker of this home."""
    script = home.scratch / "ministack-lambda-api-x" / "_worker.py"
    script.parent.mkdir()
    script.write_text("import time\nprint('up', flush=True)\ntime.sleep(60)")
    with subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        yield child
        child.kill()


def taken_port() -> Iterator[int]:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener.getsockname()[1]


taken = pytest.fixture(taken_port)


@pytest.fixture
def unused() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_a_note_is_kept_private_and_updated_field_by_field(home: Home) -> None:
    home.settled.write(port=1)
    home.settled.update(password="p")
    assert home.settled.read() == {"port": 1, "password": "p"}
    assert home.settled.path.stat().st_mode & 0o077 == 0


def test_a_note_torn_by_a_crash_reads_as_empty(home: Home) -> None:
    home.running.path.write_text('{"pid": 1')
    assert home.running.read() == {}


def test_the_state_moves_with_the_port(home: Home) -> None:
    home.settled.write(port=4566)
    saved = home.state / "sqs.json"
    saved.write_text('{"url": "http://localhost:4566/000000000000/q", "other": "localhost:45660", "count": 4566}')
    state.mend(home, 4570)
    assert json.loads(saved.read_text()) == {"url": "http://localhost:4570/000000000000/q", "other": "localhost:45660", "count": 4566}


def test_stream_mappings_start_again_after_a_restart(home: Home) -> None:
    saved = home.state / "lambda.json"
    saved.write_text(json.dumps({"payload": {"dynamodb_stream_positions": {"data": {"a": 17}}, "functions": 1}}))
    state.mend(home, 4566)
    assert json.loads(saved.read_text()) == {"payload": {"dynamodb_stream_positions": {"data": {"a": 0}}, "functions": 1}}


def test_buckets_of_a_killed_first_run_are_deleted_and_others_kept(home: Home) -> None:
    (home.objects / "bucket").mkdir()
    (home.state / "cloudformation.json").write_text("{}")
    state.mend(home, 4566)
    assert (home.objects / "bucket").exists()
    (home.state / "cloudformation.json").unlink()
    state.mend(home, 4566)
    assert not (home.objects / "bucket").exists()


def test_a_requested_port_that_is_taken_is_refused_with_a_remedy(home: Home, taken: int) -> None:
    with pytest.raises(Trouble, match=rf"Port {taken} is taken.*make run PORT="):
        server.choose_port(home, str(taken))


@pytest.mark.parametrize("wanted", ["http", "0", "80", "70000", "-1"])
def test_an_invalid_port_is_refused(home: Home, wanted: str) -> None:
    with pytest.raises(Trouble, match="PORT must be a number"):
        server.choose_port(home, wanted)


def test_the_last_port_is_used_again_unless_it_is_taken(home: Home, taken: int, unused: int) -> None:
    home.settled.write(port=taken)
    assert server.choose_port(home, None) != taken
    home.settled.write(port=unused)
    assert server.choose_port(home, None) == unused


def test_a_port_reserved_by_another_process_is_taken(home: Home, unused: int) -> None:
    home.settled.write(port=unused)
    with server.lock_of(unused).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert server.choose_port(home, None) != unused
        with pytest.raises(Trouble, match=rf"Port {unused} is taken"):
            server.choose_port(home, str(unused))
    assert server.choose_port(home, None) == unused


def test_a_process_differs_from_a_later_one_with_its_number() -> None:
    assert process.this().alive
    assert not process.Process(os.getpid(), "another start").alive


def test_a_zombie_process_is_not_alive() -> None:
    child = subprocess.Popen([sys.executable, "-c", "pass"], stdout=subprocess.PIPE)
    started = process.started(child.pid)
    assert child.stdout is not None
    child.stdout.read()
    assert process.end([process.Process(child.pid, started or "")], patience=5)
    child.stdout.close()
    child.wait()


def test_workers_of_a_killed_run_are_stopped_and_reported(home: Home, sleeper: subprocess.Popen[bytes]) -> None:
    assert previous.clear(home) == ["Stopped 1 function workers that an earlier run left behind."]
    assert sleeper.wait(5) != 0


def test_a_process_that_ignores_the_signal_is_killed(tmp_path: Path) -> None:
    script = "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('up', flush=True)\ntime.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        assert not process.end([process.Process(child.pid, process.started(child.pid) or "")], patience=0.1)
        assert child.wait(5) == -9


def test_workers_of_another_home_are_left_alone(tmp_path: Path, sleeper: subprocess.Popen[bytes]) -> None:
    assert previous.clear(Home(tmp_path / "other").create()) == []
    assert sleeper.poll() is None


def test_a_run_with_a_live_owner_is_not_disturbed(home: Home) -> None:
    me = process.this()
    home.running.write(pid=me.pid, started=me.started, owner=me.pid, owner_started=me.started, port=4566)
    with pytest.raises(Trouble, match="make stop"):
        previous.clear(home)


def test_a_local_aws_of_a_killed_run_is_stopped_with_its_jobs_kept(home: Home, sleeper: subprocess.Popen[bytes]) -> None:
    home.running.write(pid=sleeper.pid, started=process.started(sleeper.pid), owner=sleeper.pid, owner_started="gone", port=4566)
    assert "jobs are kept" in previous.clear(home)[0]
    assert sleeper.wait(5) != 0
    assert home.running.read() == {}


def test_a_killed_local_aws_is_reported_with_its_loss(home: Home) -> None:
    home.running.write(pid=1, started="gone", owner=1, owner_started="gone", port=4566)
    assert "is lost" in previous.clear(home)[0]


def test_a_clean_home_needs_no_report(home: Home) -> None:
    assert previous.clear(home) == []


def sources(repository: Path) -> Path:
    for folder in ("infra", "lambdas", "scheduler"):
        (repository / folder / "__pycache__").mkdir(parents=True)
        (repository / folder / "code.py").write_text("x = 1")
    (repository / "app.py").write_text("")
    return repository


def test_only_a_change_of_deployed_files_causes_a_deploy(tmp_path: Path) -> None:
    repository = sources(tmp_path)
    before = deploy.fingerprint(repository)
    (repository / "README.md").write_text("new")
    (repository / "lambdas" / "__pycache__" / "code.pyc").write_text("new")
    assert deploy.fingerprint(repository) == before
    (repository / "scheduler" / "code.py").write_text("x = 2")
    assert deploy.fingerprint(repository) != before


def test_a_missing_or_old_node_is_reported_with_a_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Trouble, match=r"Node\.js is missing"):
        deploy.find_cdk()
    node = tmp_path / "node"
    node.write_text("#!/bin/sh\necho v18.19.0\n")
    node.chmod(0o755)
    with pytest.raises(Trouble, match=r"v18\.19\.0.*too old"):
        deploy.find_cdk()
