import { expect, test } from 'vitest';
import { whyOf } from './why';
const failure = { kind: 'permanent', message: 'HTTP 400' };
const attempts = [{ outcome: 'failed', failure }];
test('a failed job tells its last error before what the scheduler made of it', () => expect(whyOf({ status: 'failed', reason: 'the error is permanent', attempts })).toEqual({ error: 'HTTP 400', reason: 'the error is permanent' }));
test('the error at the end of a reason is told once, also if it is cut there', () => {
    const why = (reason, message) => whyOf({ status: 'failed', reason, attempts: [{ outcome: 'failed', failure: { ...failure, message } }] });
    expect(why('no attempt is left of 3: HTTP 400', 'HTTP 400')).toEqual({ error: 'HTTP 400', reason: 'no attempt is left of 3' });
    expect(why('the error is permanent', 'e')?.reason).toBe('the error is permanent');
    expect(why('HTTP 400', 'HTTP 400')).toEqual({ error: 'HTTP 400', reason: null });
    const long = 'e'.repeat(900);
    expect(why(`the error is permanent: ${long.slice(0, 499)}…`, long)?.reason).toBe('the error is permanent');
});
test('a job without an attempt tells the reason alone', () => {
    expect(whyOf({ status: 'skipped', reason: 'it expired', attempts: [] })).toEqual({ error: 'it expired', reason: null });
    expect(whyOf({ status: 'killed', reason: 'its executor died', attempts: [] })).toEqual({ error: 'its executor died', reason: null });
});
test('a job that goes on tells why it waits, and not how an earlier attempt failed', () => expect(whyOf({ status: 'scheduled', reason: 'breaker: it waits', attempts })).toEqual({ error: 'breaker: it waits', reason: null }));
test('a job that ended well has nothing to tell', () => {
    expect(whyOf({ status: 'succeeded', reason: 'old', attempts })).toBeNull();
    expect(whyOf({ status: 'running', reason: null, attempts: [] })).toBeNull();
});
