/** Instants as people read them: in their own zone, UTC behind it, and a word on how far away they are. */
import { useEffect, useState, type ReactNode } from 'react';

import { relative, span } from '../words';

const SHORT = new Intl.DateTimeFormat(undefined, { month: 'short', day: 'numeric', hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23' });
const YEARS = new Intl.DateTimeFormat(undefined, { year: 'numeric', month: 'short', day: 'numeric', hour: '2-digit', minute: '2-digit', hourCycle: 'h23' });
const LONG = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium', hourCycle: 'h23' });

export const VIEWERS_ZONE = Intl.DateTimeFormat().resolvedOptions().timeZone || 'UTC';

let now = Date.now();
const watchers = new Set<() => void>();
setInterval(() => {
  now = Date.now();
  for (const watcher of watchers) watcher();
}, 1_000);

/** The time, ticking every second. */
export function useNow(): number {
  const [seen, setSeen] = useState(now);
  useEffect(() => {
    const watcher = (): void => setSeen(now);
    watchers.add(watcher);
    return () => void watchers.delete(watcher);
  }, []);
  return seen;
}

/** An instant; UTC on hover. `exact` shows its milliseconds. */
export function When({ at, exact = false }: { at: string | null; exact?: boolean }): ReactNode {
  if (at === null) return '–';
  const date = new Date(at);
  const text = exact ? `${SHORT.format(date)}.${String(date.getUTCMilliseconds()).padStart(3, '0')}` : (date.getFullYear() === new Date(now).getFullYear() ? SHORT : YEARS).format(date);
  return (
    <time dateTime={at} title={`${at} (UTC)`} className="when">
      {text}
    </time>
  );
}

/** How far away an instant is, ticking; the instant itself on hover. */
export function Ago({ at }: { at: string | null }): ReactNode {
  const seen = useNow();
  if (at === null) return '–';
  return (
    <time dateTime={at} title={`${LONG.format(new Date(at))} · ${at} (UTC)`} className="when">
      {relative(new Date(at).getTime(), seen)}
    </time>
  );
}

/** The time of day, for the axis of a chart. */
export function clock(at: Date): string {
  return at.toLocaleTimeString(undefined, { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' });
}

/** From one instant to another, in words. */
export function between(from: string | null, to: string | null): string {
  return from === null || to === null ? '–' : span(new Date(to).getTime() - new Date(from).getTime());
}
