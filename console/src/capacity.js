const MINUTE = 60_000;
export function isShort(minute, available) {
    return minute.required_instances > available;
}
/** Each row of minutes in which scaling is needed, with the most that one of them requires. */
export function shortages(minutes, available) {
    const found = [];
    let open = null;
    for (const minute of minutes) {
        if (!isShort(minute, available)) {
            open = null;
            continue;
        }
        const to = new Date(new Date(minute.scheduled_at).getTime() + MINUTE).toISOString();
        if (open === null) {
            open = { from: minute.scheduled_at, to, required: minute.required_instances, minutes: 1 };
            found.push(open);
        }
        else {
            open.to = to;
            open.required = Math.max(open.required, minute.required_instances);
            open.minutes += 1;
        }
    }
    return found;
}
export function totals(minutes) {
    let busiest = null;
    for (const minute of minutes)
        if (minute.jobs > (busiest?.jobs ?? 0))
            busiest = minute;
    return {
        jobs: minutes.reduce((sum, minute) => sum + minute.jobs, 0),
        busiest,
        required: minutes.reduce((most, minute) => Math.max(most, minute.required_instances), 0),
    };
}
/** What its minutes require, and the minutes beside it: the part of a line to be marked. */
export function marked(minutes, { from, to }) {
    const first = minutes.findIndex(({ scheduled_at: at }) => at === from);
    const end = minutes.findIndex(({ scheduled_at: at }) => at === to);
    return points(minutes.slice(Math.max(0, first - 1), end < 0 ? undefined : end + 1), (minute) => minute.required_instances);
}
/** One point a minute. */
export function points(minutes, value) {
    return minutes.map((minute) => ({ x: new Date(minute.scheduled_at), y: value(minute) }));
}
