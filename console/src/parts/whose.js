import { jsx as _jsx, jsxs as _jsxs } from "react/jsx-runtime";
/** Whose tasks and jobs a page shows: one's own, those of one user, or everybody's. The address has it: `?owner=<id>`, `?owner=all`. */
import Box from '@cloudscape-design/components/box';
import Select, {} from '@cloudscape-design/components/select';
import { useSearchParams } from 'react-router';
import { api, take } from '../api/client';
import { idOf, mayOversee, useRole, useSession } from '../api/session';
import { useLive } from '../live';
const EVERYBODY = 'all';
const PAGE = 60;
export const MOST_USERS = 300;
const AT_ONCE = 4;
const MINE = { value: '', label: 'Me' };
export function useWhose() {
    const [query] = useSearchParams();
    const role = useRole();
    const session = useSession();
    const named = query.get('owner') ?? '';
    const everybody = named === EVERYBODY;
    const own = session !== null && named === idOf(session.token);
    return { owner: named === '' || everybody || own ? undefined : named, everybody, mayChange: named === '' || own || role === 'administrator' };
}
/** A choice that only operators and administrators see. */
export function WhoseChoice() {
    return mayOversee(useRole()) ? _jsx(Choice, {}) : null;
}
function Choice() {
    const [query, setQuery] = useSearchParams();
    const session = useSession();
    const users = useUsers();
    const named = query.get('owner') ?? '';
    const chosen = session !== null && named === idOf(session.token) ? '' : named;
    const others = (users.data?.users ?? []).filter(({ username }) => username !== session?.username);
    const options = [
        MINE,
        { value: EVERYBODY, label: 'Everyone' },
        { label: 'Users and machine clients', options: others.map(({ id, username }) => ({ value: id, label: username })) },
    ];
    const flat = [MINE, { value: EVERYBODY, label: 'Everyone' }, ...others.map(({ id, username }) => ({ value: id, label: username }))];
    return (_jsx(Select, { ariaLabel: "Owner", options: options, filteringType: "auto", filteringAriaLabel: "Find a user", statusType: users.loading ? 'loading' : users.error === null ? 'finished' : 'error', loadingText: "Loading users", errorText: "The users could not be loaded", selectedOption: flat.find(({ value }) => value === chosen) ?? { value: chosen, label: chosen }, onChange: ({ detail }) => setQuery((before) => {
            const next = new URLSearchParams(before);
            const value = detail.selectedOption.value ?? '';
            if (value === '')
                next.delete('owner');
            else
                next.set('owner', value);
            for (const name of ['task', 'operation', 'redrive', 'of', 'whose'])
                next.delete(name); // of the user before
            return next;
        }, { replace: true }) }));
}
/** The owner's name above what is not one's own. */
export function OfWhom() {
    const { owner } = useWhose();
    return owner === undefined ? null : _jsx(Name, { id: owner });
}
function Name({ id }) {
    const found = useLive(`user ${id}`, () => take(api.GET('/api/v1/users/{user_id}', { params: { path: { user_id: id } } })), 0);
    return _jsxs(Box, { color: "text-body-secondary", children: ["Owner: ", _jsx("b", { children: found.data?.username ?? id })] });
}
export function useUsers() {
    return useLive('users', everyone, 0);
}
/** All users and machine clients by name, up to `MOST_USERS`. */
export async function everyone() {
    const users = [];
    let cursor;
    do {
        const page = await take(api.GET('/api/v1/users', { params: { query: { limit: PAGE, cursor } } }));
        users.push(...page.clients, ...page.items);
        cursor = page.cursor ?? undefined;
    } while (cursor !== undefined && users.length < MOST_USERS);
    users.sort((one, other) => one.username.localeCompare(other.username));
    return { users, complete: cursor === undefined };
}
/** What each user has, with its owner: the API lists one user's at a time. */
export async function ofEverybody(ask) {
    const { users, complete } = await everyone();
    const left = [...users];
    const found = [];
    const work = async () => {
        for (let owner = left.shift(); owner !== undefined; owner = left.shift()) {
            const of = owner;
            found.push(...(await ask(of.id)).map((each) => ({ ...each, owner: of })));
        }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, work));
    return { found, complete };
}
