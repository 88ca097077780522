/** Which errors of a refused request are still there after an edit. Pure. */
import { write } from '../exact';
import { fieldErrors } from './draft';
/** An error goes when its field is not what was refused, and comes back with that value. */
export function errorsOf(refused, now) {
    if (refused === null)
        return {};
    const request = now();
    return Object.fromEntries(Object.entries(fieldErrors(refused.error)).filter(([field]) => write(valueAt(refused.sent, field.split('.'))) === write(valueAt(request, field.split('.')))));
}
/** The value of a field, whose name may itself have dots. */
function valueAt(record, path) {
    if (path.length === 0 || record === null || typeof record !== 'object')
        return path.length === 0 ? record : undefined;
    for (let parts = path.length; parts > 0; parts -= 1) {
        const name = path.slice(0, parts).join('.');
        if (Object.hasOwn(record, name))
            return valueAt(record[name], path.slice(parts));
    }
    return undefined;
}
