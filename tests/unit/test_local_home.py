"""The files of a local AWS, the repair of its state, its port, and the clean-up after an earlier run."""

import fcntl
import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
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
    script.write_text("import time\nprint('up', flush=True)\ntime.sleep(600)")
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
    state.mend(home, 4566)
    saved = home.state / "sqs.json"
    saved.write_text('{"url": "http://localhost:4566/000000000000/q", "other": "localhost:45660", "count": 4566}')
    state.mend(home, 4570)
    assert json.loads(saved.read_text()) == {"url": "http://localhost:4570/000000000000/q", "other": "localhost:45660", "count": 4566}


def test_the_port_of_a_start_that_was_killed_is_replaced_too(home: Home) -> None:
    for port in (4566, 4570):  # the start on 4570 is killed before it is healthy
        state.mend(home, port)
        (home.state / "sqs.json").write_text(f'{{"url": "http://localhost:{port}/q"}}')
    home.settled.write(port=4566)
    state.mend(home, 4580)
    assert json.loads((home.state / "sqs.json").read_text()) == {"url": "http://localhost:4580/q"}


def test_stream_mappings_start_again_after_a_restart(home: Home) -> None:
    saved = home.state / "lambda.json"
    saved.write_text(json.dumps({"payload": {"dynamodb_stream_positions": {"data": {"a": 17}}, "functions": 1}}))
    state.mend(home, 4566)
    assert json.loads(saved.read_text()) == {"payload": {"dynamodb_stream_positions": {"data": {"a": 0}}, "functions": 1}}


def written(*names: str) -> Callable[[Path, state.Services], None]:
    """Return a function that writes only these services, as MiniStack does when the others fail."""

    def write(folder: Path, services: state.Services) -> None:
        for name, state_of in services.items():
            content = state_of()
            if name in names and content is not None:
                (folder / f"{name}.json").write_text(json.dumps(content))

    return write


def contents(home: Home) -> dict[str, object]:
    return {path.stem: json.loads(path.read_text()) for path in sorted(home.state.glob("*.json"))}


def test_a_saved_state_replaces_the_one_before_at_the_next_start(home: Home) -> None:
    (home.state / "iam.json").write_text('"unused in this run"')
    state.save(home, {"sqs": lambda: 1, "ssm": lambda: 2, "iam": lambda: None}, written("sqs", "ssm", "iam"))
    state.mend(home, 4566)
    assert contents(home) == {"iam": "unused in this run", "sqs": 1, "ssm": 2}


class Kill(BaseException):
    """A kill at this place."""


def test_a_kill_while_the_state_is_saved_keeps_the_one_before(home: Home) -> None:
    def killed() -> None:
        raise Kill

    for name in ("cloudformation", "ssm"):
        (home.state / f"{name}.json").write_text("1")
    with pytest.raises(Kill):
        state.save(home, {"cloudformation": lambda: 2, "ssm": killed}, written("cloudformation", "ssm"))
    state.mend(home, 4566)
    assert contents(home) == {"cloudformation": 1, "ssm": 1}


def test_a_state_with_a_service_that_could_not_be_written_is_not_kept(home: Home) -> None:
    with pytest.raises(state.NotSaved, match="the state of ssm"):
        state.save(home, {"sqs": lambda: 2, "ssm": lambda: 2}, written("sqs"))
    state.mend(home, 4566)
    assert contents(home) == {}


def test_a_kill_between_two_files_of_the_new_state_is_repaired(home: Home) -> None:
    for name in ("cloudformation", "ssm"):
        (home.state / f"{name}.json").write_text("1")
    state.save(home, {"cloudformation": lambda: 2, "ssm": lambda: 2}, written("cloudformation", "ssm"))
    (home.saved / "cloudformation.json").replace(home.state / "cloudformation.json")  # as far as a killed start came
    state.mend(home, 4566)
    assert contents(home) == {"cloudformation": 2, "ssm": 2}


def test_only_buckets_and_objects_that_the_state_knows_are_kept(home: Home) -> None:
    state.save(home, {"s3": lambda: {"payload": {"buckets_meta": {"data": {"000000000000\0'known'": {}}}}}}, written("s3"))
    state.mend(home, 4566)
    saved_at = (home.state / "s3.json").stat().st_mtime
    for bucket, key, age in (("known", "kept", 10), ("known", "of a killed run", -10), ("new", "asset", -10)):
        path = home.objects / "000000000000" / bucket / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        os.utime(path, (saved_at - age, saved_at - age))
    state.mend(home, 4566)
    assert [path.relative_to(home.objects).as_posix() for path in sorted(home.objects.rglob("*"))] == [
        "000000000000",
        "000000000000/known",
        "000000000000/known/kept",
    ]


def test_all_objects_of_a_killed_first_run_are_deleted(home: Home) -> None:
    (home.objects / "000000000000" / "bucket").mkdir(parents=True)
    state.mend(home, 4566)
    assert not (home.objects / "000000000000" / "bucket").exists()


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
    assert process.end([process.Process(child.pid, started or "")], patience=60)
    child.stdout.close()
    child.wait()


def test_workers_of_a_killed_run_are_stopped_and_reported(home: Home, sleeper: subprocess.Popen[bytes]) -> None:
    assert previous.clear(home) == ["Stopped 1 function workers that an earlier run left behind."]
    assert sleeper.wait(60) != 0


def test_a_process_that_ignores_the_signal_is_killed(tmp_path: Path) -> None:
    script = "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('up', flush=True)\ntime.sleep(600)"
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        assert not process.end([process.Process(child.pid, process.started(child.pid) or "")], patience=0.1)
        assert child.wait(60) == -9


def test_workers_of_another_home_are_left_alone(tmp_path: Path, sleeper: subprocess.Popen[bytes]) -> None:
    assert previous.clear(Home(tmp_path / "other").create()) == []
    assert sleeper.poll() is None


def test_a_run_with_a_live_owner_is_not_disturbed(home: Home) -> None:
    me = process.this()
    home.running.write(pid=me.pid, started=me.started, owner=me.pid, owner_started=me.started, port=4566)
    with pytest.raises(Trouble, match="make stop"):
        previous.clear(home)


def local_aws(home: Home, script: str) -> subprocess.Popen[bytes]:
    """Start a process with the command line of the local AWS of this home. It prints a line when it is ready."""
    begin = f"import signal, sys, time, pathlib\n{script}\nprint('up', flush=True)\ntime.sleep(600)\n"
    start = f"exec({begin!r}); from local.emulator import main; main()"
    child = subprocess.Popen([sys.executable, "-c", start, str(home.root)], stdout=subprocess.PIPE)
    assert child.stdout is not None
    child.stdout.readline()
    return child


SAVES = """
def save(*_):
    pathlib.Path(sys.argv[1], "state.saved").mkdir()
    time.sleep(600)  # for functions that still run
signal.signal(signal.SIGTERM, save)
"""


def test_a_local_aws_of_a_killed_run_is_stopped_with_its_jobs_kept(home: Home) -> None:
    with local_aws(home, SAVES) as aws:
        home.running.write(pid=aws.pid, started=process.started(aws.pid), owner=aws.pid, owner_started="gone", port=4566)
        assert "jobs are kept" in previous.clear(home)[0]
        assert aws.wait(60) != 0
    assert home.running.read() == {}


@pytest.mark.long
def test_a_stop_waits_for_a_slow_save_though_the_run_does_not_end(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """Under load the owner may not end in time: it is killed, and its local AWS still saves its state."""
    monkeypatch.setattr(previous, "PATIENCE", 0.2)
    busy = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(600)"
    slow = SAVES.replace("def save(*_):", "def save(*_):\n    time.sleep(0.6)")
    with subprocess.Popen([sys.executable, "-c", busy], stdout=subprocess.PIPE) as owner, local_aws(home, slow) as aws:
        assert owner.stdout is not None
        owner.stdout.readline()
        begun = process.started(owner.pid)
        home.running.write(pid=aws.pid, started=process.started(aws.pid), owner=owner.pid, owner_started=begun, port=4566)
        killed, kept = previous.stop(home)
        assert killed.startswith("Killed") and "jobs are kept" in kept
        assert aws.wait(60) != 0 and owner.wait(60) != 0


def test_a_local_aws_that_its_killed_owner_had_not_noted_is_stopped(home: Home) -> None:
    with local_aws(home, SAVES) as aws:
        assert "jobs are kept" in previous.clear(home)[0]
        assert aws.wait(60) != 0


def test_a_local_aws_that_ends_without_its_state_is_reported(home: Home) -> None:
    with local_aws(home, "") as aws:
        assert "could not be saved" in previous.clear(home)[0]
        assert aws.wait(60) != 0


def test_a_local_aws_of_another_home_is_left_alone(home: Home, tmp_path: Path) -> None:
    with local_aws(Home(tmp_path / "aws" / "demo").create(), "") as aws:
        assert previous.clear(home) == []
        assert aws.poll() is None
        aws.kill()


def test_a_killed_local_aws_is_reported_with_its_loss(home: Home) -> None:
    home.running.write(pid=1, started="gone", owner=1, owner_started="gone", port=4566)
    assert "is lost" in previous.clear(home)[0]


def test_a_local_aws_that_ended_in_order_after_a_kill_lost_nothing(home: Home) -> None:
    home.running.write(pid=1, started="gone", owner=1, owner_started="gone", port=4566)
    state.save(home, {"sqs": lambda: 1}, written("sqs"))
    assert "jobs are kept" in previous.clear(home)[0]


def test_the_deployment_of_a_killed_run_is_stopped(home: Home) -> None:
    script = "import time; print('up', flush=True); time.sleep(600)"
    with subprocess.Popen([sys.executable, "-c", script, "app.py", str(home.assembly)], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        assert previous.clear(home) == ["Stopped a deployment that an earlier run left behind."]
        assert child.wait(60) != 0


def assembly(tmp_path: Path, lock: str | None) -> Path:
    folder = tmp_path / "cdk.out"
    (folder / "asset.half").mkdir(parents=True)
    if lock is not None:
        (folder / "synth.lock").write_text(lock)
    return folder


def test_an_assembly_whose_synthesis_was_killed_is_not_used_again(tmp_path: Path) -> None:
    folder = assembly(tmp_path, str(2**22 + 1))  # no process has this number
    deploy.drop_unfinished(folder, ours=False)
    assert not folder.exists()


def test_an_assembly_that_another_process_synthesizes_is_left_alone(tmp_path: Path) -> None:
    folder = assembly(tmp_path, str(os.getpid()))
    deploy.drop_unfinished(folder, ours=False)
    assert folder.exists()


def test_locks_of_a_killed_run_do_not_count_in_its_own_folder(tmp_path: Path) -> None:
    folder = assembly(tmp_path, None)
    (folder / f"read.{os.getpid()}.1.lock").touch()  # its number is that of another process by now
    deploy.drop_unfinished(folder, ours=True)
    assert [path.name for path in folder.iterdir()] == ["asset.half"]
    (folder / "synth.lock").write_text(str(os.getpid()))
    deploy.drop_unfinished(folder, ours=True)
    assert not folder.exists()


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
