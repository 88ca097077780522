/** Null for types without a time-out of the call. */
export function timeOuts(schema, payload, attempt) {
    const field = schema.properties?.['timeout_seconds'];
    if (field === undefined)
        return null;
    const call = Number(payload['timeout_seconds'] ?? field.default ?? NaN);
    const whole = Number(attempt);
    if (!(call > 0) || !(whole > 0))
        return { text: 'The attempt is killed after this time.', useless: false };
    if (call >= whole)
        return { text: `The attempt is killed after ${whole} s, before the call time-out (${call} s) applies.`, useless: true };
    return { text: `The call times out after ${call} s (see the payload). The attempt is killed after ${whole} s.`, useless: false };
}
