import { jsx as _jsx, jsxs as _jsxs, Fragment as _Fragment } from "react/jsx-runtime";
import Box from '@cloudscape-design/components/box';
import Button from '@cloudscape-design/components/button';
import ButtonDropdown from '@cloudscape-design/components/button-dropdown';
import ColumnLayout from '@cloudscape-design/components/column-layout';
import FormField from '@cloudscape-design/components/form-field';
import Header from '@cloudscape-design/components/header';
import Input from '@cloudscape-design/components/input';
import Pagination from '@cloudscape-design/components/pagination';
import Select from '@cloudscape-design/components/select';
import SpaceBetween from '@cloudscape-design/components/space-between';
import StatusIndicator from '@cloudscape-design/components/status-indicator';
import Table from '@cloudscape-design/components/table';
import { useState } from 'react';
import { api, take } from '../api/client';
import { useRole } from '../api/session';
import { pageOfDocs } from '../docs';
import { useLive } from '../live';
import { DocsLink } from '../parts/docs-link';
import { FormDialog } from '../parts/form-dialog';
import { useNotices } from '../parts/notices';
import { usePages } from '../parts/pages';
import { Empty, Failed, Stale, useConfirm, useTitle } from '../parts/parts';
import { POLICY } from '../parts/password';
import { Refresh } from '../parts/trail';
import { When } from '../parts/time';
const ROLES = [
    { value: 'user', label: 'User', description: 'Owns tasks and jobs' },
    { value: 'operator', label: 'Operator', description: 'Also sees the tasks and jobs of all users' },
    { value: 'administrator', label: 'Administrator', description: 'Also changes them, users, targets and queues' },
];
const LIMIT = 60;
const EVERY = 15_000;
/** Who may sign in, what they may, and how much of it. */
export default function Users() {
    useTitle('Users');
    const administers = useRole() === 'administrator';
    const pages = usePages('users');
    const live = useLive(`users ${pages.cursor ?? ''}`, () => take(api.GET('/api/v1/users', { params: { query: { limit: LIMIT, cursor: pages.cursor } } })), EVERY);
    const [asked, ask] = useState(null);
    const [dialog, confirm] = useConfirm();
    const { done, failed } = useNotices();
    const allow = async (user, enabled) => {
        const params = { path: { user_id: user.id } };
        try {
            await take(enabled ? api.POST('/api/v1/users/{user_id}/enable', { params }) : api.POST('/api/v1/users/{user_id}/disable', { params }));
            done(`${enabled ? 'Enabled' : 'Disabled'} ${user.username}.`);
            live.reload();
        }
        catch (error) {
            failed(`${user.username} was not changed`, error);
        }
    };
    const act = (user, what) => {
        if (what === 'change' || what === 'password')
            ask({ what, user });
        else if (what === 'enable')
            void allow(user, true);
        else
            confirm({ title: `Disable ${user.username}?`, text: 'Their access ends within 30 seconds. Their tasks and jobs continue.', yes: 'Disable', act: () => allow(user, false) });
    };
    const close = () => ask(null);
    const clients = live.data?.clients ?? [];
    return (_jsxs(SpaceBetween, { size: "l", children: [dialog, asked?.what === 'create' && _jsx(UserDialog, { user: null, onClose: close, onDone: live.reload }), asked?.what === 'change' && _jsx(UserDialog, { user: asked.user, onClose: close, onDone: live.reload }), asked?.what === 'password' && _jsx(NewPassword, { user: asked.user, onClose: close }), _jsx(Table, { variant: "full-page", stickyHeader: true, contentDensity: "compact", trackBy: "id", items: live.data?.items ?? [], loading: live.loading, loadingText: "Loading users", ariaLabels: { tableLabel: 'Users', selectionGroupLabel: '' }, header: _jsxs(SpaceBetween, { size: "xs", children: [_jsx(Header, { variant: "awsui-h1-sticky", description: "The people who can sign in. When more jobs are due than can run, weight 2 gets twice the share of weight 1.", actions: _jsxs(SpaceBetween, { direction: "horizontal", size: "xs", children: [_jsx(Refresh, { live: live }), administers && (_jsx(Button, { variant: "primary", onClick: () => ask({ what: 'create' }), children: "Create user" }))] }), children: "Users" }), _jsx(Stale, { live: live })] }), pagination: _jsx(Pagination, { ...pages.bar(live.data?.cursor), ariaLabels: { nextPageLabel: 'Next page', previousPageLabel: 'Previous page', pageLabel: (n) => `Page ${n}` } }), empty: live.error !== null && live.data === null ? _jsx(Failed, { error: live.error, what: "users", retry: live.reload }) : (_jsxs(Empty, { title: "No users", children: [_jsx(Box, { variant: "p", color: "inherit", children: "Each person who uses the console or the API needs a user with a role." }), administers && _jsx(Button, { onClick: () => ask({ what: 'create' }), children: "Create a user" }), _jsx(DocsLink, { href: pageOfDocs('reference/roles'), children: "Roles" })] })), columnDefinitions: [
                    { id: 'name', header: 'Name', cell: (user) => _jsx("span", { title: user.id, children: user.username }), isRowHeader: true },
                    { id: 'role', header: 'Role', cell: (user) => ROLES.find(({ value }) => value === user.role)?.label ?? '–' },
                    { id: 'state', header: 'State', cell: (user) => _jsx(StatusIndicator, { type: user.enabled ? 'success' : 'stopped', children: user.enabled ? 'Enabled' : 'Disabled' }) },
                    { id: 'weight', header: 'Weight', cell: (user) => user.job_weight },
                    { id: 'jobs', header: 'Max waiting jobs', cell: (user) => _jsx(Quota, { own: user.quotas.max_jobs, allowed: user.effective_quotas.max_jobs }) },
                    { id: 'creates', header: 'Max creates per second', cell: (user) => _jsx(Quota, { own: user.quotas.creates_per_second, allowed: user.effective_quotas.creates_per_second }) },
                    { id: 'created', header: 'Created', cell: (user) => _jsx(When, { at: user.created_at }) },
                    ...(administers
                        ? [
                            {
                                id: 'actions',
                                header: 'Actions',
                                cell: (user) => (_jsx(ButtonDropdown, { variant: "inline-icon", ariaLabel: `Actions of ${user.username}`, expandToViewport: true, items: [
                                        { id: 'change', text: 'Change' },
                                        { id: 'password', text: 'Set password' },
                                        user.enabled ? { id: 'disable', text: 'Disable' } : { id: 'enable', text: 'Enable' },
                                    ], onItemClick: ({ detail }) => act(user, detail.id) })),
                            },
                        ]
                        : []),
                ] }), clients.length > 0 && (_jsx(Table, { contentDensity: "compact", trackBy: "id", items: clients, ariaLabels: { tableLabel: 'Machine clients', selectionGroupLabel: '' }, header: _jsx(Header, { variant: "h2", description: "The options of the stage define them and their scopes.", children: "Machine clients" }), columnDefinitions: [
                    { id: 'name', header: 'Name', cell: (user) => user.username, isRowHeader: true },
                    { id: 'id', header: 'Id', cell: (user) => user.id },
                    { id: 'weight', header: 'Weight', cell: (user) => user.job_weight },
                ] }))] }));
}
/** A limit of their own stands as it is; that of everyone is grey. */
function Quota({ own, allowed }) {
    if (own !== null)
        return own.toLocaleString();
    return _jsx(Box, { color: "text-body-secondary", children: allowed === null ? 'no limit' : allowed.toLocaleString() });
}
const FIELDS = ['username', 'password', 'role', 'job_weight', 'quotas.max_jobs', 'quotas.creates_per_second'];
/** Create one (`user` null), or change what they may. */
function UserDialog({ user, onClose, onDone }) {
    const text = (value) => (value === null || value === undefined ? '' : String(value));
    const [username, setUsername] = useState('');
    const [password, setPassword] = useState('');
    const [role, setRole] = useState(user?.role ?? 'user');
    const [weight, setWeight] = useState(text(user?.job_weight ?? 1));
    const [jobs, setJobs] = useState(text(user?.quotas.max_jobs));
    const [creates, setCreates] = useState(text(user?.quotas.creates_per_second));
    const { done } = useNotices();
    const act = async () => {
        const may = { role, job_weight: Number(weight), quotas: { max_jobs: limit(jobs), creates_per_second: limit(creates) } };
        if (user === null)
            await take(api.POST('/api/v1/users', { body: { username, password, ...may } }));
        else
            await take(api.PATCH('/api/v1/users/{user_id}', { params: { path: { user_id: user.id } }, body: may }));
        done(user === null ? `Created ${username}.` : `Changed ${user.username}.`);
        onDone();
    };
    return (_jsx(FormDialog, { title: user === null ? 'Create a user' : `Change ${user.username}`, yes: user === null ? 'Create' : 'Save', fields: FIELDS, values: { username, password, role, job_weight: weight, quotas: { max_jobs: jobs, creates_per_second: creates } }, act: act, onClose: onClose, children: (errors) => (_jsxs(SpaceBetween, { size: "m", children: [user === null && (_jsxs(SpaceBetween, { size: "m", children: [_jsx(FormField, { label: "User name", errorText: errors['username'], children: _jsx(Input, { value: username, onChange: ({ detail }) => setUsername(detail.value), autoComplete: false, autoFocus: true }) }), _jsx(FormField, { label: "Password", description: POLICY, errorText: errors['password'], children: _jsx(Input, { type: "password", value: password, onChange: ({ detail }) => setPassword(detail.value), autoComplete: "new-password" }) })] })), _jsx(FormField, { label: "Role", errorText: errors['role'], description: user === null ? undefined : 'Takes effect with their next token, within an hour.', children: _jsx(Select, { options: ROLES, selectedOption: ROLES.find(({ value }) => value === role) ?? null, triggerVariant: "option", onChange: ({ detail }) => setRole(detail.selectedOption.value) }) }), _jsx(FormField, { label: "Weight", errorText: errors['job_weight'], children: _jsx(Input, { type: "number", value: weight, onChange: ({ detail }) => setWeight(detail.value) }) }), _jsxs(ColumnLayout, { columns: 2, children: [_jsx(FormField, { label: _jsxs(_Fragment, { children: ["Max waiting jobs ", _jsx("i", { children: "\u2013 optional" })] }), errorText: errors['quotas.max_jobs'], children: _jsx(Input, { type: "number", value: jobs, placeholder: text(user?.effective_quotas.max_jobs) || 'default', onChange: ({ detail }) => setJobs(detail.value) }) }), _jsx(FormField, { label: _jsxs(_Fragment, { children: ["Max creates per second ", _jsx("i", { children: "\u2013 optional" })] }), errorText: errors['quotas.creates_per_second'], children: _jsx(Input, { type: "number", value: creates, placeholder: text(user?.effective_quotas.creates_per_second) || 'default', onChange: ({ detail }) => setCreates(detail.value) }) })] })] })) }));
}
/** Nothing typed: as the deployment allows everyone. */
function limit(text) {
    return text.trim() === '' ? null : Number(text);
}
function NewPassword({ user, onClose }) {
    const [password, setPassword] = useState('');
    const { done } = useNotices();
    const act = async () => {
        await take(api.PUT('/api/v1/users/{user_id}/password', { params: { path: { user_id: user.id } }, body: { password } }));
        done(`${user.username} has a new password. All sessions have ended.`);
    };
    return (_jsx(FormDialog, { title: `Set a password for ${user.username}`, yes: "Set", fields: ['password'], values: { password }, act: act, onClose: onClose, children: (errors) => (_jsx(FormField, { label: "New password", description: POLICY, errorText: errors['password'], children: _jsx(Input, { type: "password", value: password, onChange: ({ detail }) => setPassword(detail.value), autoComplete: "new-password", autoFocus: true }) })) }));
}
