/** Jobs that ended, whichever way. */
export function endedOf(counts) {
    return counts.succeeded + counts.failed + counts.killed + counts.cancelled + counts.skipped;
}
/** Of all that ended and were not called off, the share that was on time; null if there are none. */
export function onTimeOf(counts) {
    const meant = endedOf(counts) - counts.cancelled;
    return meant === 0 ? null : 1 - Math.min(counts.late, meant) / meant;
}
/** Of all that were tried, the share that succeeded; null if there are none. */
export function successOf(counts) {
    const tried = counts.succeeded + counts.failed + counts.killed;
    return tried === 0 ? null : counts.succeeded / tried;
}
const NAMES = ['succeeded', 'failed', 'killed', 'cancelled', 'skipped', 'late'];
export function sum(all) {
    const total = { succeeded: 0, failed: 0, killed: 0, cancelled: 0, skipped: 0, late: 0 };
    for (const each of all)
        for (const name of NAMES)
            total[name] += each[name];
    return total;
}
/** Every day of the span in its order, also those on which nothing ended; `2026-11-20`. */
export function daysOf(since, until) {
    const found = [];
    const last = until.slice(0, 10);
    for (let at = new Date(`${since.slice(0, 10)}T00:00:00Z`); at.toISOString().slice(0, 10) <= last; at = new Date(at.getTime() + 86_400_000))
        found.push(at.toISOString().slice(0, 10));
    return found;
}
/** Without the days before the first one on which anything ended, but of `least` days at any rate. */
export function since(days, daily, least) {
    const first = daily[0]?.day;
    const begun = first === undefined ? days.length : days.findIndex((day) => day >= first);
    return days.slice(Math.max(0, Math.min(begun < 0 ? days.length : begun, days.length - least)));
}
/** A value per day of one type (null: of all types together); days for which there is none are left out. */
export function byDay(days, daily, type, value) {
    return days.flatMap((x) => {
        const y = value((daily.find(({ day }) => day === x)?.types ?? []).filter((each) => type === null || each.type === type));
        return y === null ? [] : [{ x, y }];
    });
}
/** The slowest first; those of which none ran are left out. */
export function slowest(types) {
    return types.filter((each) => each.p95_ms !== null).sort((one, other) => (other.p95_ms ?? 0) - (one.p95_ms ?? 0));
}
/** By task, how long these runs took; the slowest first. */
export function slowTasks(jobs) {
    const found = new Map();
    for (const { task_id: id, type, started_at: from, completed_at: to } of jobs) {
        if (id === null || from === null || to === null)
            continue;
        const took = new Date(to).getTime() - new Date(from).getTime();
        const before = found.get(id) ?? { id, type, runs: 0, average: 0, longest: 0 };
        const runs = before.runs + 1;
        found.set(id, { id, type, runs, average: before.average + (took - before.average) / runs, longest: Math.max(before.longest, took) });
    }
    return [...found.values()].sort((one, other) => other.average - one.average);
}
