/** What stands around every page: name and account above, the pages at the side. */
import AppLayout from '@cloudscape-design/components/app-layout';
import Box from '@cloudscape-design/components/box';
import SideNavigation, { type SideNavigationProps } from '@cloudscape-design/components/side-navigation';
import Spinner from '@cloudscape-design/components/spinner';
import TopNavigation from '@cloudscape-design/components/top-navigation';
import { Suspense, lazy, useEffect, useRef, useState, type ReactNode } from 'react';
import { Outlet, useLocation, useNavigate } from 'react-router';

import { end, mayOversee, useRole, useSession, type Role } from './api/session';
import { pageOfDocs } from './docs';
import { useLaneFlashes } from './parts/lanes';
import { ofOwner } from './parts/links';
import { Flashes } from './parts/notices';
import { PasswordDialog } from './parts/password';
import { choose, isDark } from './parts/theme';
import { VIEWERS_ZONE } from './parts/time';

const SecondFactorDialog = lazy(() => import('./parts/second-factor')); // few people need its QR code

const STATUS: SideNavigationProps.Item = { type: 'link', text: 'Status', href: '/status' };
const OF_AN_OWNER = [
  { type: 'link', text: 'Tasks', href: '/tasks' },
  { type: 'link', text: 'Jobs', href: '/jobs' },
  { type: 'link', text: 'Groups', href: '/groups' },
  { type: 'link', text: 'Failed jobs', href: '/dead-letters' },
  { type: 'link', text: 'Operations', href: '/operations' },
  { type: 'link', text: 'API keys', href: '/keys' },
  { type: 'link', text: 'Monitors', href: '/monitors' },
  { type: 'link', text: 'Calendars', href: '/calendars' },
  { type: 'link', text: 'Receivers', href: '/receivers' },
] as const;
const PAGES: SideNavigationProps.Item[] = [
  { type: 'divider' },
  { type: 'link', text: 'Capacity', href: '/capacity' },
  { type: 'link', text: 'Metrics', href: '/metrics' },
  { type: 'divider' },
  { type: 'link', text: 'Named targets', href: '/targets' },
  { type: 'link', text: 'Teams', href: '/teams' },
];
const OF_OPERATORS: SideNavigationProps.Item[] = [
  { type: 'link', text: 'Users', href: '/users' },
  { type: 'link', text: 'AWS roles', href: '/principals' },
  { type: 'link', text: 'System', href: '/system' },
];
const TRAIL: SideNavigationProps.Item = { type: 'link', text: 'Audit trail', href: '/audit' };
const ROLES: Record<Role, string | undefined> = { user: undefined, operator: 'Operator', administrator: 'Administrator' };
const ELSEWHERE: SideNavigationProps.Item[] = [
  { type: 'divider' },
  { type: 'link', text: 'Documentation', href: pageOfDocs('index'), external: true, externalIconAriaLabel: 'opens in a new tab' },
  { type: 'link', text: 'API reference', href: '/reference.html', external: true, externalIconAriaLabel: 'opens in a new tab' },
  { type: 'link', text: 'API (Swagger)', href: '/api/v1/docs', external: true, externalIconAriaLabel: 'opens in a new tab' },
];

/** Every page stays with the owner that the address names. */
function withOwner(item: SideNavigationProps.Item, whose: string): SideNavigationProps.Item {
  return item.type === 'link' ? { ...item, href: `${item.href}${whose}` } : item;
}

/** On a phone the layout gives its navigation an attribute that no navigation may have, which axe finds serious. */
function useNavigationWithoutOrientation(): void {
  useEffect(() => {
    const mend = (): void => document.querySelector('nav[aria-orientation]')?.removeAttribute('aria-orientation');
    mend();
    const changes = new MutationObserver(mend);
    changes.observe(document.body, { childList: true, subtree: true });
    return () => changes.disconnect();
  }, []);
}

export function Shell(): ReactNode {
  useNavigationWithoutOrientation();
  const navigate = useNavigate();
  const { pathname, search } = useLocation();
  const whose = ofOwner(new URLSearchParams(search).get('owner') ?? undefined);
  const active = `/${pathname.split('/')[1] ?? ''}`;
  const session = useSession();
  const [dark, setDark] = useState(isDark);
  const content = useRef<HTMLDivElement>(null);
  const [open, setOpen] = useState(window.innerWidth > 900);
  const role = useRole();
  const standing = useLaneFlashes(pathname);
  const [dialog, setDialog] = useState<'password' | 'second-factor' | null>(null);
  const go = (event: CustomEvent<{ href?: string; external?: boolean }>): void => {
    if (event.detail.external || event.detail.href === undefined) return;
    event.preventDefault();
    void navigate(event.detail.href);
  };
  const account = (event: CustomEvent<{ id: string }>): void => {
    if (event.detail.id === 'sign-out') end(null);
    if (event.detail.id === 'password' || event.detail.id === 'second-factor') setDialog(event.detail.id);
  };
  return (
    <>
      <a
        className="skip"
        href="#content"
        onClick={(event) => {
          event.preventDefault(); // the address stays
          content.current?.focus();
        }}
      >
        Skip to the content
      </a>
      {dialog === 'password' && <PasswordDialog onClose={() => setDialog(null)} />}
      {dialog === 'second-factor' && (
        <Suspense>
          <SecondFactorDialog onClose={() => setDialog(null)} />
        </Suspense>
      )}
      <div id="top">
        <TopNavigation
          identity={{ href: '/', title: 'Punctual', logo: { src: '/clock.svg', alt: '' }, onFollow: (event) => { event.preventDefault(); void navigate('/'); } }}
          utilities={[
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
          ]}
        />
      </div>
      <AppLayout
        headerSelector="#top"
        toolsHide
        navigationOpen={open}
        onNavigationChange={({ detail }) => setOpen(detail.open)}
        navigation={
          <SideNavigation
            header={{ href: '/', text: 'Scheduler' }}
            activeHref={`${active}${whose}`}
            items={[...[STATUS, ...OF_AN_OWNER, ...PAGES, ...(mayOversee(role) ? OF_OPERATORS : []), TRAIL].map((item) => withOwner(item, whose)), ...ELSEWHERE]}
            onFollow={go}
            itemsControl={<Box color="text-body-secondary" fontSize="body-s">Times are in {VIEWERS_ZONE}. Point at a time to see it in UTC.</Box>}
          />
        }
        notifications={<Flashes standing={standing} />}
        stickyNotifications
        maxContentWidth={1_800}
        content={
          <div id="content" ref={content} tabIndex={-1}>
            <Suspense fallback={<Box textAlign="center" padding="xxl"><Spinner size="large" /></Box>}>
              <Outlet />
            </Suspense>
          </div>
        }
      />
    </>
  );
}
