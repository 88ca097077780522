/** The times by which jobs are filtered. Pure. */
const HOUR = 3_600_000;
const SPANS = { hour: HOUR, day: 24 * HOUR, week: 7 * 24 * HOUR, month: 30 * 24 * HOUR };
/** "Between" has its two instants in the address. */
export const BETWEEN = 'between';
export function spanOptions(ahead) {
    const word = ahead ? 'next' : 'last';
    return [
        { value: '', label: 'Any time' },
        { value: 'hour', label: `The ${word} hour` },
        { value: 'day', label: `The ${word} 24 hours` },
        { value: 'week', label: `The ${word} 7 days` },
        { value: 'month', label: `The ${word} 30 days` },
        { value: BETWEEN, label: 'Between …' },
    ];
}
/** What the API is asked for at `now`: scheduled at or after `from`, and before `to`. */
export function bounds(query, ahead, now) {
    const time = query.get('time') ?? '';
    if (time === BETWEEN) {
        const [from, to] = [query.get('from'), query.get('to')];
        return { ...(from === null ? {} : { from }), ...(to === null ? {} : { to }) };
    }
    const span = Object.hasOwn(SPANS, time) ? SPANS[time] : undefined;
    if (span === undefined)
        return {};
    return ahead ? { to: new Date(now + span).toISOString() } : { from: new Date(now - span).toISOString() };
}
