/** By what tasks can be sorted; null where a task has none. */
export const ORDERS = {
    name: (task) => task.name,
    status: (task) => task.status,
    type: (task) => task.target ?? task.type,
    zone: (task) => task.schedule?.time_zone ?? null,
    next: (task) => task.next_run?.at ?? null,
};
const collator = new Intl.Collator(undefined, { numeric: true, sensitivity: 'base' });
/** Those without a value come last either way; equal ones keep their place. An unknown order leaves all as they are. */
export function sorted(tasks, by, descending) {
    const value = Object.hasOwn(ORDERS, by) ? ORDERS[by] : undefined;
    if (value === undefined)
        return [...tasks];
    return [...tasks].sort((one, other) => {
        const [a, b] = [value(one), value(other)];
        if (a === null || b === null)
            return a === b ? 0 : a === null ? 1 : -1;
        return descending ? collator.compare(b, a) : collator.compare(a, b);
    });
}
/** The newest first: ids begin with the time of creation. */
export function newestFirst(items) {
    return [...items].sort((one, other) => (one.id < other.id ? 1 : one.id > other.id ? -1 : 0));
}
