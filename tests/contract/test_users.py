"""The port Users."""

from scheduler.storage.ports import Users


def test_the_last_weight_is_stored_and_users_without_are_omitted(users: Users) -> None:
    users.set_weight("ann", 2.5)
    users.set_weight("ben", 1.0)
    users.set_weight("ann", 0.25)
    assert users.weights(["ben", "ann", "ann", "cyd"]) == {"ann": 0.25, "ben": 1.0}
    assert users.weights([]) == {}


def test_weights_of_many_users_are_read_in_one_call(users: Users) -> None:
    names = [f"user-{number}" for number in range(120)]
    for name in names[::2]:
        users.set_weight(name, 3.0)
    assert users.weights(names) == dict.fromkeys(names[::2], 3.0)
