"""The port Users beside weights: profiles and tallies; and the port Trail."""

import itertools
import json
from dataclasses import replace
from typing import Any

import pytest
from botocore.exceptions import ClientError

from scheduler.model import ids
from scheduler.model.account import Ceiling, Profile, Quotas, Stock, Tally
from scheduler.model.audit import AuditEntry
from scheduler.model.errors import SchedulerError
from scheduler.model.instants import parse
from scheduler.storage.aws import clients
from scheduler.storage.aws.trail import DynamoTrail, LockedTrail
from scheduler.storage.memory.accounts import MemoryTrail
from scheduler.storage.ports import Barred, OwnerRecord, Trail, Users
from tests.contract import tables
from tests.contract.make import NOW

DAY = 86_400_000
_numbers = itertools.count()


@pytest.fixture(params=["memory", "dynamodb", "locked"])
def trail(request: pytest.FixtureRequest) -> Trail:
    if request.param == "memory":
        return MemoryTrail()
    trail = DynamoTrail(tables.on_moto(request, "audit", tables.AUDIT), "audit")
    if request.param == "dynamodb":
        return trail
    request.getfixturevalue("moto")
    return LockedTrail(trail, _locking(), "locked")


def _locking() -> Any:
    """A client of S3, with a bucket that locks its objects."""
    client = clients.s3()
    client.create_bucket(Bucket="locked", ObjectLockEnabledForBucket=True)
    rule: Any = {"DefaultRetention": {"Mode": "COMPLIANCE", "Days": 365}}
    client.put_object_lock_configuration(Bucket="locked", ObjectLockConfiguration={"ObjectLockEnabled": "Enabled", "Rule": rule})
    return client


def test_an_entry_is_locked_before_its_change_and_after_it(moto: None) -> None:
    client, unlocked = _locking(), MemoryTrail()
    trail, begun = LockedTrail(unlocked, client, "locked"), entry(NOW)
    trail.write(begun)
    trail.write(replace(begun, status=200))
    keys = [each["Key"] for each in client.list_objects_v2(Bucket="locked")["Contents"]]
    assert keys == [f"2026/11/18/{begun.id}-ended.json", f"2026/11/18/{begun.id}.json"]
    stored = json.loads(client.get_object(Bucket="locked", Key=keys[1])["Body"].read())
    assert (stored["action"], stored["actor"], stored["status"]) == (begun.action, begun.actor, None)
    version = client.list_object_versions(Bucket="locked", Prefix=keys[1])["Versions"][0]["VersionId"]
    with pytest.raises(ClientError, match="AccessDenied"):
        client.delete_object(Bucket="locked", Key=keys[1], VersionId=version)


def test_an_entry_that_cannot_be_locked_is_not_stored(moto: None) -> None:
    unlocked = MemoryTrail()
    with pytest.raises(SchedulerError):
        LockedTrail(unlocked, clients.s3(), "no-such-bucket").write(entry(NOW))
    assert not unlocked.rows


def test_a_user_without_a_profile_has_the_defaults(users: Users) -> None:
    assert users.profiles(["ann"]) == {"ann": Profile("ann")}


def test_each_part_of_a_profile_is_set_independently(users: Users) -> None:
    users.set_quotas("ann", Quotas(100, 2.5))
    users.set_disabled("ann", NOW)
    users.set_stock("ann", Stock(7, 20, NOW))
    users.set_sessions_since("ann", NOW + 1)
    ann = Profile("ann", Quotas(100, 2.5), NOW, Stock(7, 20, NOW), NOW + 1)
    assert users.profiles(["ann", "ben"]) == {"ann": ann, "ben": Profile("ben")}


def test_a_removed_quota_is_gone(users: Users) -> None:
    users.set_quotas("ann", Quotas(0, 2.5))
    users.set_disabled("ann", NOW)
    users.set_quotas("ann", Quotas(creates_per_second=1.0))
    users.set_disabled("ann", None)
    assert users.profiles(["ann"]) == {"ann": Profile("ann", Quotas(None, 1.0))}


def test_the_users_whose_jobs_do_not_run_are_listed_together(users: Users) -> None:
    assert users.barred() == Barred()
    for id in ("ann", "ben", "ann"):
        users.set_disabled(id, NOW)
    assert users.barred() == Barred(frozenset({"ann", "ben"}))
    users.set_disabled("ann", None)
    users.set_disabled("ann", None)
    assert users.barred() == Barred(frozenset({"ben"}))
    users.set_disabled("ben", None)
    assert users.barred() == Barred()


def test_a_deleted_user_is_disabled_and_listed_as_deleted(users: Users) -> None:
    users.set_disabled("ann", NOW)
    for _ in range(2):
        users.delete("ann", NOW)
    assert users.barred() == Barred(deleted=frozenset({"ann"})) and users.profiles(["ann"])["ann"].disabled_at == NOW


def test_a_tally_adds_up_over_processes(users: Users) -> None:
    assert users.add_to_tally("ann", 3, NOW) == Tally(3, NOW, 3)
    assert users.add_to_tally("ann", 4, NOW + 5) == Tally(7, NOW, 7)
    assert users.add_to_tally("ann", -1, NOW + 6) == Tally(6, NOW, 6)
    assert users.add_to_tally("ben", 1, NOW + 7) == Tally(1, NOW + 7, 1)


def test_one_process_restarts_a_tally_which_keeps_its_total(users: Users) -> None:
    seen = users.add_to_tally("ann", 3, NOW)
    assert users.restart_tally("ann", seen, 1, NOW + 9)
    assert not users.restart_tally("ann", seen, 1, NOW + 10)
    assert users.add_to_tally("ann", 1, NOW + 11) == Tally(2, NOW + 9, 4)


def test_a_tally_is_added_to_up_to_its_ceiling(users: Users) -> None:
    assert users.add_within("ann", 3, NOW, Ceiling(0, 0, 0), restart=False) == (True, Tally(3, NOW, 3))
    assert users.add_within("ann", 4, NOW + 5, Ceiling(NOW, 3, 3), restart=False) == (True, Tally(7, NOW, 7))
    for ceiling in (Ceiling(NOW, 6), Ceiling(NOW, 7, 6), Ceiling(NOW + 1), Ceiling(0)):
        assert users.add_within("ann", 1, NOW + 6, ceiling, restart=False) == (False, Tally(7, NOW, 7))
    assert users.add_within("ann", 1, NOW + 6, Ceiling(NOW), restart=False) == (True, Tally(8, NOW, 8))
    assert users.add_within("ben", 1, NOW, Ceiling(NOW), restart=False) == (False, Tally())


def test_a_tally_within_its_ceiling_restarts_and_keeps_its_total(users: Users) -> None:
    users.add_within("ann", 3, NOW, Ceiling(0), restart=True)
    assert users.add_within("ann", 2, NOW + 9, Ceiling(NOW, 2), restart=True) == (False, Tally(3, NOW, 3))
    assert users.add_within("ann", 2, NOW + 9, Ceiling(NOW, 3), restart=True) == (True, Tally(2, NOW + 9, 5))


def test_a_profile_is_read_with_its_tally(users: Users) -> None:
    assert users.owner("ann") == OwnerRecord(Profile("ann"), Tally(), [])
    users.set_quotas("ann", Quotas(5))
    assert users.owner("ann") == OwnerRecord(Profile("ann", Quotas(5)), Tally(), [])
    users.add_to_tally("ann", 3, NOW)
    assert users.owner("ann") == OwnerRecord(Profile("ann", Quotas(5)), Tally(3, NOW, 3), [])
    users.add_to_tally("ben", 3, NOW)
    assert users.owner("ben") == OwnerRecord(Profile("ben"), Tally(3, NOW, 3), [])


def test_freed_jobs_add_up_once_a_count_is_stored(users: Users) -> None:
    users.free("ann", 3)
    users.set_quotas("ann", Quotas(5))
    users.free("ann", 3)
    assert users.profiles(["ann"])["ann"].freed == 0
    users.set_stock("ann", Stock(7, 20, NOW))
    users.free("ann", 3)
    users.free("ann", 2)
    users.set_stock("ann", Stock(4, 20, NOW + 1, 5))
    assert users.profiles(["ann"])["ann"] == Profile("ann", Quotas(5), stock=Stock(4, 20, NOW + 1, 5), freed=5)


def entry(at: int, owner: str = "ann", **fields: object) -> AuditEntry:
    id, changes = ids.new(at, next(_numbers), partitions=1), {"name": "n", "deep": {"a": [1]}}
    made = AuditEntry(id, at, "ada", owner, "task.edit", "t1", "r1", "192.0.2.1", changes=changes)
    return replace(made, **fields)  # type: ignore[arg-type]


def test_an_entry_round_trips_and_again_with_its_end(trail: Trail) -> None:
    one = entry(NOW, object=None)
    trail.write(one)
    assert trail.entries("ann", since=NOW, until=NOW + 1, after=None, limit=5) == ([one], None)
    ended = replace(one, status=201, ended_at=NOW + 5, object="t2")
    trail.write(ended)
    assert trail.entries("ann", since=NOW, until=NOW + 1, after=None, limit=5) == ([ended], None)


def test_entries_are_listed_newest_first_in_pages(trail: Trail) -> None:
    made = [entry(NOW + number) for number in range(5)]
    for one in (*made, entry(NOW + 2, owner="ben")):
        trail.write(one)
    page, cursor = trail.entries("ann", since=NOW, until=NOW + 4, after=None, limit=3)
    assert page == [made[3], made[2], made[1]] and cursor == made[1].id
    assert trail.entries("ann", since=NOW, until=NOW + 4, after=cursor, limit=3) == ([made[0]], None)


def test_the_entries_of_all_users_are_listed_across_months(trail: Trail) -> None:
    times = [parse(f"2026-{month}-15T00:00:00Z") for month in ("11", "10", "08")] + [parse("2025-12-31T23:59:59Z")]
    made = [entry(at, owner=f"user{number}") for number, at in enumerate(times)]
    for one in made:
        trail.write(one)
    found: list[AuditEntry] = []
    after = None
    for _ in range(len(made) + 2):
        page, after = trail.entries(None, since=times[-1], until=NOW + 1, after=after, limit=1)
        found += page
        if after is None:
            break
    assert found == made and after is None
    assert trail.entries(None, since=times[2], until=times[0], after=None, limit=9) == (made[1:3], None)


def test_an_entry_expires_after_four_hundred_days(moto: None) -> None:
    client = clients.dynamodb()
    client.create_table(TableName="audit", **tables.AUDIT)
    DynamoTrail(client, "audit").write(entry(NOW))
    (item,) = client.scan(TableName="audit")["Items"]
    assert int(item["expires"]["N"]) == (NOW + 400 * DAY) // 1000
