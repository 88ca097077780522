/** What is set in a folded part of a form, in a line. Pure. */
import { span } from '../words';
import { OCCASIONS, tellsAnyone } from './notifications';
const NOTHING = 'None';
/** Fields of payloads that are folded: credentials, and what few calls need. */
export const AUTHENTICATION = ['bearer_secret', 'basic_user', 'basic_secret', 'header_secrets', 'signing_secret'];
export const HEADERS = ['headers'];
export function authentication(payload) {
    const { bearer_secret: bearer, basic_user: user, basic_secret: basic, header_secrets: headers, signing_secret: signing } = payload;
    return listed([bearer && 'bearer token', (user || basic) && 'basic authentication', headers && namesOf(headers, 'header from a secret', 'headers from secrets'), signing && 'signed']);
}
export function headers(payload) {
    return typeof payload['headers'] === 'object' && payload['headers'] !== null ? listed(Object.keys(payload['headers'])) : NOTHING;
}
function namesOf(value, one, many) {
    const count = typeof value === 'object' && value !== null ? Object.keys(value).length : 1;
    return count === 1 ? one : `${count} ${many}`;
}
export function retries({ maxAttempts, retryBase, retryCap, retryElapsed, retryOnTimeout }) {
    if (maxAttempts.trim() === '1')
        return 'None: a single attempt';
    return listed([`waits from ${seconds(retryBase)} to ${seconds(retryCap)}`, retryElapsed && `stops after ${seconds(retryElapsed)}`, !retryOnTimeout && 'not after a time-out']);
}
export function order({ orderingKey, onFailure }) {
    return orderingKey.trim() === '' ? NOTHING : listed([`key ${orderingKey.trim()}`, onFailure === 'pause' && 'pauses after a failure']);
}
export function callback({ callback: wanted, leaseSeconds, maxSeconds }) {
    return wanted ? `A heartbeat within ${seconds(leaseSeconds)}, ${seconds(maxSeconds)} in all` : NOTHING;
}
export function notifications({ notifications: draft, events }) {
    const receivers = draft.emails.length + draft.webhooks.length;
    const on = draft.on.map((each) => OCCASIONS[each]?.short ?? each).join(', ');
    return listed([tellsAnyone(draft) && `${receivers} receiver${receivers === 1 ? '' : 's'} on ${on || 'nothing'}`, events && 'an event when it ends']);
}
export function missed({ misfire, misfireThreshold, maxCatchUp }) {
    const rule = { run_all: 'all run', skip: 'none runs' }[misfire] ?? 'the latest runs';
    return listed([rule, misfireThreshold && `missed after ${seconds(misfireThreshold)}`, misfire === 'run_all' && maxCatchUp && `at most ${maxCatchUp}`]);
}
export function bounds({ start, end, maxRuns, jitter, dstGap, dstOverlap }) {
    return listed([start && 'a start', end && 'an end', maxRuns && `at most ${maxRuns} runs`, jitter && `jitter of ${seconds(jitter)}`, (dstGap || dstOverlap) && 'clock changes']);
}
export function labels({ key, tags, description = '' }) {
    return listed([description.trim() && 'a description', key.trim() && `key ${key.trim()}`, tags.length > 0 && `tags ${tags.join(', ')}`]);
}
/** A first letter in upper case, and commas between. */
function listed(parts) {
    const words = parts.filter((part) => typeof part === 'string' && part !== '').join(', ');
    return words === '' ? NOTHING : words.charAt(0).toUpperCase() + words.slice(1);
}
function seconds(typed) {
    const value = Number(typed);
    return typed.trim() === '' || Number.isNaN(value) ? `${typed || '?'} s` : span(value * 1_000);
}
