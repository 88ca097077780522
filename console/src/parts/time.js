import { jsx as _jsx } from "react/jsx-runtime";
/** Instants as people read them: in their own zone, UTC behind it, and a word on how far away they are. */
import { useEffect, useState } from 'react';
import { relative, span } from '../words';
const SHORT = new Intl.DateTimeFormat(undefined, { month: 'short', day: 'numeric', hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23' });
const YEARS = new Intl.DateTimeFormat(undefined, { year: 'numeric', month: 'short', day: 'numeric', hour: '2-digit', minute: '2-digit', hourCycle: 'h23' });
const LONG = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium', hourCycle: 'h23' });
export const VIEWERS_ZONE = Intl.DateTimeFormat().resolvedOptions().timeZone || 'UTC';
let now = Date.now();
const watchers = new Set();
setInterval(() => {
    now = Date.now();
    for (const watcher of watchers)
        watcher();
}, 1_000);
/** The time, ticking every second. */
export function useNow() {
    const [seen, setSeen] = useState(now);
    useEffect(() => {
        const watcher = () => setSeen(now);
        watchers.add(watcher);
        return () => void watchers.delete(watcher);
    }, []);
    return seen;
}
/** An instant; UTC on hover. `exact` shows its milliseconds. */
export function When({ at, exact = false }) {
    if (at === null)
        return '–';
    const date = new Date(at);
    const text = exact ? `${SHORT.format(date)}.${String(date.getUTCMilliseconds()).padStart(3, '0')}` : (date.getFullYear() === new Date(now).getFullYear() ? SHORT : YEARS).format(date);
    return (_jsx("time", { dateTime: at, title: `${at} (UTC)`, className: "when", children: text }));
}
/** How far away an instant is, ticking; the instant itself on hover. */
export function Ago({ at }) {
    const seen = useNow();
    if (at === null)
        return '–';
    return (_jsx("time", { dateTime: at, title: `${LONG.format(new Date(at))} · ${at} (UTC)`, className: "when", children: relative(new Date(at).getTime(), seen) }));
}
/** The time of day, for the axis of a chart. */
export function clock(at) {
    return at.toLocaleTimeString(undefined, { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' });
}
/** From one instant to another, in words. */
export function between(from, to) {
    return from === null || to === null ? '–' : span(new Date(to).getTime() - new Date(from).getTime());
}
