import { Exact, writeVisible } from './exact';
/** A job is created, or the one that has the key is changed. */
export function jobCall(request) {
    const { key, ...body } = request;
    const { delay_seconds: delay, ...rest } = body;
    const named = { ...(key !== undefined && { key }), ...(delay !== undefined && { delay }), ...rest };
    const python = { answer: 'job', method: 'jobs.create', given: [], named };
    return key === undefined ? { method: 'POST', path: '/jobs', body, python } : { method: 'PUT', path: byKey('/jobs', key), body, python };
}
/** A task is created, or the one that has the key is replaced; of another user, the one that has the id. */
export function taskCall(request, edited) {
    const { key, ...body } = request;
    const python = (method, given, named) => ({ answer: method === 'tasks.put' ? 'result' : 'task', method, given, named });
    if (edited !== undefined && (key === undefined || edited.owner !== undefined)) {
        const { id, owner } = edited;
        const whole = request;
        const query = owner === undefined ? '' : `?owner=${encodeURIComponent(owner)}`;
        return { method: 'PUT', path: `/tasks/${id}${query}`, body: whole, python: python('tasks.replace', [id], { ...(owner !== undefined && { owner }), ...whole }) };
    }
    if (key !== undefined)
        return { method: 'PUT', path: byKey('/tasks', key), body, python: python('tasks.put', [String(key)], body) };
    return { method: 'POST', path: '/tasks', body, python: python('tasks.create', [], body) };
}
function byKey(list, key) {
    return `${list}/by-key/${encodeURIComponent(String(key))}`;
}
/** The command, for a POSIX shell. It reads the token from PUNCTUAL_TOKEN. */
export function curlOf(origin, { method, path, body }) {
    return [
        `curl -sS --fail-with-body -X ${method} ${shell(`${origin}/api/v1${path}`)}`,
        '-H "Authorization: Bearer $PUNCTUAL_TOKEN"',
        "-H 'Content-Type: application/json'",
        `-d ${shell(writeVisible(body, 2))}`,
    ].join(' \\\n  ') + '\n';
}
function shell(text) {
    return `'${text.replaceAll("'", "'\\''")}'`;
}
/**
 * The program. The package reads the token from PUNCTUAL_TOKEN, or the credentials of a machine client.
 * On the local stack it reads the address, too: Python does not find the console's name, which browsers take for this machine.
 */
export function pythonOf(origin, { python: { answer, method, given, named } }) {
    const args = [...given.map((each) => literal(each, 8)), ...Object.entries(named).map(([name, value]) => `${name}=${literal(value, 8)}`)];
    return [
        'from punctual import Punctual',
        '',
        new URL(origin).hostname.endsWith('.localhost')
            ? 'with Punctual() as client:  # reads PUNCTUAL_URL and PUNCTUAL_TOKEN, or a profile'
            : `with Punctual(${literal(origin, 0)}) as client:  # reads PUNCTUAL_TOKEN`,
        `    ${answer} = client.${method}(`,
        ...args.map((each) => `        ${each},`),
        '    )',
        `    print(${answer === 'result' ? 'result.task' : answer}.id)`,
        '',
    ].join('\n');
}
const WIDTH = 88;
/** JSON as Python writes it, broken over lines if it is too long for one. */
function literal(value, indent) {
    if (value === null || value === undefined)
        return 'None';
    if (typeof value === 'boolean')
        return value ? 'True' : 'False';
    if (typeof value !== 'object' || value instanceof Exact)
        return writeVisible(value);
    const [open, close] = Array.isArray(value) ? '[]' : '{}';
    const parts = (deeper) => Array.isArray(value) ? value.map((each) => literal(each, deeper)) : Object.entries(value).map(([name, each]) => `${writeVisible(name)}: ${literal(each, deeper)}`);
    const line = `${open}${parts(0).join(', ')}${close}`;
    if (line.length + indent < WIDTH && !line.includes('\n'))
        return line;
    const pad = ' '.repeat(indent + 4);
    return [open, ...parts(indent + 4).map((part) => `${pad}${part},`), `${' '.repeat(indent)}${close}`].join('\n');
}
