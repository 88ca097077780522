import { jsx as _jsx, jsxs as _jsxs, Fragment as _Fragment } from "react/jsx-runtime";
/** What stands around every page: name and account above, the pages at the side. */
import AppLayout from '@cloudscape-design/components/app-layout';
import Box from '@cloudscape-design/components/box';
import SideNavigation, {} from '@cloudscape-design/components/side-navigation';
import Spinner from '@cloudscape-design/components/spinner';
import TopNavigation from '@cloudscape-design/components/top-navigation';
import { Suspense, useEffect, useRef, useState } from 'react';
import { Outlet, useLocation, useNavigate } from 'react-router';
import { end, mayOversee, useRole, useSession } from './api/session';
import { pageOfDocs } from './docs';
import { useLaneFlashes } from './parts/lanes';
import { ofOwner } from './parts/links';
import { Flashes } from './parts/notices';
import { PasswordDialog } from './parts/password';
import { SecondFactorDialog } from './parts/second-factor';
import { choose, isDark } from './parts/theme';
import { VIEWERS_ZONE } from './parts/time';
const STATUS = { type: 'link', text: 'Status', href: '/status' };
/** Pages of what a user has: they stay with the user that the address names. */
const OF_A_USER = [
    { type: 'link', text: 'Tasks', href: '/tasks' },
    { type: 'link', text: 'Jobs', href: '/jobs' },
    { type: 'link', text: 'Failed jobs', href: '/dead-letters' },
    { type: 'link', text: 'Operations', href: '/operations' },
];
const PAGES = [
    { type: 'divider' },
    { type: 'link', text: 'Capacity', href: '/capacity' },
    { type: 'link', text: 'Metrics', href: '/metrics' },
    { type: 'divider' },
    { type: 'link', text: 'Named targets', href: '/targets' },
];
const OF_OPERATORS = [
    { type: 'link', text: 'Users', href: '/users' },
    { type: 'link', text: 'System', href: '/system' },
];
const TRAIL = { type: 'link', text: 'Audit trail', href: '/audit' };
const ROLES = { user: undefined, operator: 'Operator', administrator: 'Administrator' };
const ELSEWHERE = [
    { type: 'divider' },
    { type: 'link', text: 'Documentation', href: pageOfDocs('index'), external: true, externalIconAriaLabel: 'opens in a new tab' },
    { type: 'link', text: 'API reference', href: '/reference.html', external: true, externalIconAriaLabel: 'opens in a new tab' },
    { type: 'link', text: 'API (Swagger)', href: '/api/v1/docs', external: true, externalIconAriaLabel: 'opens in a new tab' },
];
/** On a phone the layout gives its navigation an attribute that no navigation may have, which axe finds serious. */
function useNavigationWithoutOrientation() {
    useEffect(() => {
        const mend = () => document.querySelector('nav[aria-orientation]')?.removeAttribute('aria-orientation');
        mend();
        const changes = new MutationObserver(mend);
        changes.observe(document.body, { childList: true, subtree: true });
        return () => changes.disconnect();
    }, []);
}
export function Shell() {
    useNavigationWithoutOrientation();
    const navigate = useNavigate();
    const { pathname, search } = useLocation();
    const whose = ofOwner(new URLSearchParams(search).get('owner') ?? undefined);
    const active = `/${pathname.split('/')[1] ?? ''}`;
    const session = useSession();
    const [dark, setDark] = useState(isDark);
    const content = useRef(null);
    const [open, setOpen] = useState(window.innerWidth > 900);
    const role = useRole();
    const standing = useLaneFlashes(pathname);
    const [dialog, setDialog] = useState(null);
    const go = (event) => {
        if (event.detail.external || event.detail.href === undefined)
            return;
        event.preventDefault();
        void navigate(event.detail.href);
    };
    const account = (event) => {
        if (event.detail.id === 'sign-out')
            end(null);
        if (event.detail.id === 'password' || event.detail.id === 'second-factor')
            setDialog(event.detail.id);
    };
    return (_jsxs(_Fragment, { children: [_jsx("a", { className: "skip", href: "#content", onClick: (event) => {
                    event.preventDefault(); // the address stays
                    content.current?.focus();
                }, children: "Skip to the content" }), dialog === 'password' && _jsx(PasswordDialog, { onClose: () => setDialog(null) }), dialog === 'second-factor' && _jsx(SecondFactorDialog, { onClose: () => setDialog(null) }), _jsx("div", { id: "top", children: _jsx(TopNavigation, { identity: { href: '/', title: 'Punctual', logo: { src: '/clock.svg', alt: '' }, onFollow: (event) => { event.preventDefault(); void navigate('/'); } }, utilities: [
                        {
                            type: 'button',
                            text: dark ? 'Light' : 'Dark',
                            ariaLabel: dark ? 'Light mode' : 'Dark mode',
                            onClick: () => {
                                choose(!dark);
                                setDark(!dark);
                            },
                        },
                        {
                            type: 'menu-dropdown',
                            text: session?.username ?? '',
                            description: ROLES[role],
                            iconName: 'user-profile',
                            ariaLabel: `Account: ${session?.username ?? ''}`,
                            items: [
                                {
                                    text: 'Security',
                                    items: [{ id: 'password', text: 'Change password' }, { id: 'second-factor', text: 'Second factor' }],
                                },
                                { id: 'sign-out', text: 'Sign out' },
                            ],
                            onItemClick: account,
                        },
                    ] }) }), _jsx(AppLayout, { headerSelector: "#top", toolsHide: true, navigationOpen: open, onNavigationChange: ({ detail }) => setOpen(detail.open), navigation: _jsx(SideNavigation, { header: { href: '/', text: 'Scheduler' }, activeHref: OF_A_USER.some(({ href }) => href === active) ? `${active}${whose}` : active, items: [STATUS, ...OF_A_USER.map((item) => ({ ...item, href: `${item.href}${whose}` })), ...PAGES, ...(mayOversee(role) ? OF_OPERATORS : []), TRAIL, ...ELSEWHERE], onFollow: go, itemsControl: _jsxs(Box, { color: "text-body-secondary", fontSize: "body-s", children: ["Times are in ", VIEWERS_ZONE, ". Point at a time to see it in UTC."] }) }), notifications: _jsx(Flashes, { standing: standing }), stickyNotifications: true, maxContentWidth: 1_800, content: _jsx("div", { id: "content", ref: content, tabIndex: -1, children: _jsx(Suspense, { fallback: _jsx(Box, { textAlign: "center", padding: "xxl", children: _jsx(Spinner, { size: "large" }) }), children: _jsx(Outlet, {}) }) }) })] }));
}
