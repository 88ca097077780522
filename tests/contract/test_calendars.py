"""The port Calendars, and what the port Tasks does with the calendars of a task that it stores."""

from dataclasses import replace

from scheduler.model.calendar import Calendar
from scheduler.model.job import Job
from scheduler.model.schedule import Cron, Dates, Exclusions, Schedule
from scheduler.model.task import Task
from scheduler.storage.aws import keys
from scheduler.tasks import calendar_form
from tests.contract import make
from tests.contract.conftest import Stores
from tests.contract.make import NOW

DE = Calendar("ada", "de", frozenset({739_975, 739_976}), NOW, "holidays 0.109", 739_981, version=3)
PLAIN = Calendar("ada", "x", frozenset(), NOW)


def with_calendars(task: Task, *calendars: Calendar) -> Task:
    listed = (*map(calendar_form.copy, calendars), Dates(frozenset({740_000})))
    return replace(task, schedule=Schedule(Cron("0 9 * * *"), days=Exclusions(listed)))


def edited(task: Task) -> Task:
    return replace(task, generation=task.generation + 1, updated_at=NOW + 1_000)


def ids_of(stores: Stores, name: str) -> list[str]:
    return [key.id for key in stores.calendars.tasks("ada", name, after=None, limit=10)[0]]


def test_a_calendar_is_read_back_by_name_and_in_the_list(stores: Stores) -> None:
    others = [Calendar("eve", "de", frozenset({1}), NOW), replace(PLAIN, withdrawn=True)]
    assert all(stores.calendars.put(None, each) for each in [*others, DE])
    assert stores.calendars.named("ada", ["de", "x", "y", "de"]) == {"de": DE, "x": others[1]}
    assert stores.calendars.all("ada") == [DE, others[1]] and stores.calendars.all("zoe") == []


def test_a_calendar_is_replaced_and_deleted_by_its_version_only(stores: Stores) -> None:
    assert stores.calendars.put(None, DE) and stores.calendars.put(None, DE), "an earlier answer was lost"
    later = replace(DE, version=4, days=frozenset({1}))
    assert not stores.calendars.put(None, later) and not stores.calendars.put(replace(DE, version=2), later)
    assert stores.calendars.put(DE, later) and stores.calendars.named("ada", ["de"]) == {"de": later}
    assert not stores.calendars.put(PLAIN, replace(PLAIN, version=2)), "it does not exist"
    assert not stores.calendars.delete(DE) and stores.calendars.delete(later) and not stores.calendars.delete(later)
    assert stores.calendars.named("ada", ["de"]) == {}


def test_a_task_is_listed_with_its_calendars(stores: Stores) -> None:
    for calendar in (DE, PLAIN):
        stores.calendars.put(None, calendar)
    task = with_calendars(make.task(), DE, PLAIN)
    assert stores.tasks.store(None, task, [])
    assert stores.tasks.get(task.key) == task
    assert (ids_of(stores, "de"), ids_of(stores, "x")) == ([task.id], [task.id])
    other = with_calendars(edited(task), PLAIN)
    assert stores.tasks.store(task, other, [])
    assert (ids_of(stores, "de"), ids_of(stores, "x")) == ([], [task.id])
    assert stores.tasks.delete(other) and ids_of(stores, "x") == []


def test_a_task_is_stored_with_the_present_version_only(stores: Stores) -> None:
    stores.calendars.put(None, DE)
    task, runs = with_calendars(make.task(), replace(DE, version=2)), list[Job]()
    for absent in (task, with_calendars(make.task(), PLAIN)):
        runs = [make.run(absent.key)]
        assert not stores.tasks.store(None, absent, runs)
        assert stores.tasks.get(absent.key) is None and stores.jobs.get_many([runs[0].key]) == {}
    assert ids_of(stores, "de") == [] and stores.tasks.store(None, with_calendars(task, DE), [])


def test_a_calendar_that_is_withdrawn_gets_no_other_task(stores: Stores) -> None:
    stores.calendars.put(None, DE)
    task = with_calendars(make.task(), DE)
    assert stores.tasks.store(None, task, [])
    withdrawn = replace(DE, version=4, withdrawn=True)
    stores.calendars.put(DE, withdrawn)
    assert not stores.tasks.store(None, with_calendars(make.task(), withdrawn), [])
    assert stores.tasks.store(task, with_calendars(edited(task), withdrawn), []), "it has the calendar already"


def test_the_tasks_of_a_calendar_are_read_page_by_page(stores: Stores) -> None:
    stores.calendars.put(None, DE)
    made = [with_calendars(make.task(), DE) for _ in range(5)]
    assert all(stores.tasks.store(None, task, []) for task in made)
    first, cursor = stores.calendars.tasks("ada", "de", after=None, limit=3)
    rest, end = stores.calendars.tasks("ada", "de", after=cursor, limit=3)
    assert first + rest == sorted(task.key for task in made) and len(first) == 3 and end is None


def test_the_items_of_calendars_are_no_tasks() -> None:
    for pk in (keys.calendars("ada"), keys.calendar_tasks("ada", "de")):
        assert pk.startswith(keys.BESIDE_TASKS)
