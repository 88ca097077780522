import Header from '@cloudscape-design/components/header';
import Input from '@cloudscape-design/components/input';
import Select from '@cloudscape-design/components/select';
import SpaceBetween from '@cloudscape-design/components/space-between';
import { useState, type ReactNode } from 'react';
import { useSearchParams } from 'react-router';

import { api, take } from '../api/client';
import { ACTIONS } from '../entries';
import { useLive, useSettled } from '../live';
import { usePages } from '../parts/pages';
import { Stale, useTitle } from '../parts/parts';
import { ScopeChoice, useScope } from '../parts/scope';
import { Refresh, TrailTable } from '../parts/trail';

const DAY = 86_400_000;
const LIMIT = 25;
const SPANS = [
  { value: '1', label: '1 day' },
  { value: '7', label: '7 days' },
  { value: '30', label: '30 days' },
  { value: '400', label: 'All' },
];
/** The objects of an action, as the filter names them. */
function kindOf(action: string): string {
  return { system: 'Queues and breakers', redrive: 'New runs of failed jobs', intake: 'Refused messages', key: 'API keys', principal: 'AWS roles', access: 'Refused requests' }[action] ?? `${action.charAt(0).toUpperCase()}${action.slice(1).replace('-', ' ')}s`;
}

const KINDS = [{ value: '', label: 'Any change' }, ...ACTIONS.map((value) => ({ value, label: kindOf(value) }))];

/** Who changed what: everybody's for who may see it, else one's own. */
export default function Audit(): ReactNode {
  useTitle('Audit trail');
  const { scope, owner } = useScope();
  const [query, setQuery] = useSearchParams();
  const [typed, setTyped] = useState(query.get('object') ?? '');
  const object = useSettled(typed.trim(), 400);
  const action = query.get('action') ?? '';
  const span = SPANS.find(({ value }) => value === query.get('span')) ?? SPANS[2];
  const filter = JSON.stringify([scope, owner, object, action, span?.value]);
  const pages = usePages(filter);
  const set = (name: string, value: string): void =>
    setQuery(
      (before) => {
        const next = new URLSearchParams(before);
        if (value === '') next.delete(name);
        else next.set(name, value);
        return next;
      },
      { replace: true },
    );
  const live = useLive(
    `audit ${filter} ${pages.cursor ?? ''}`,
    () => {
      const from = new Date(Date.now() - Number(span?.value ?? 30) * DAY).toISOString();
      const asked = { action: action || undefined, object: object || undefined, from, limit: LIMIT, cursor: pages.cursor };
      return take(scope === 'all' ? api.GET('/api/v1/audit', { params: { query: asked } }) : api.GET('/api/v1/me/audit', { params: { query: { ...asked, owner } } }));
    },
    10_000,
  );
  return (
    <TrailTable
      variant="full-page"
      stickyHeader
      live={live}
      pages={pages}
      columns={['at', 'who', 'action', 'outcome', 'object', 'changes', 'address']}
      header={
        <SpaceBetween size="xs">
          <Header
            variant="awsui-h1-sticky"
            description="Every requested change with its author and result, stored for 400 days."
            actions={
              <SpaceBetween direction="horizontal" size="xs">
                <Refresh live={live} />
                <ScopeChoice />
              </SpaceBetween>
            }
          >
            Audit trail
          </Header>
          <Stale live={live} />
        </SpaceBetween>
      }
      filter={
        <SpaceBetween direction="horizontal" size="xs">
          <Select ariaLabel="Change" options={KINDS} selectedOption={KINDS.find(({ value }) => value === action) ?? null} onChange={({ detail }) => set('action', detail.selectedOption.value ?? '')} />
          <Select ariaLabel="Time" options={SPANS} selectedOption={span ?? null} onChange={({ detail }) => set('span', detail.selectedOption.value ?? '')} />
          <Input
            type="search"
            value={typed}
            placeholder="Object id"
            ariaLabel="Object id"
            onChange={({ detail }) => {
              setTyped(detail.value);
              set('object', detail.value.trim());
            }}
          />
        </SpaceBetween>
      }
    />
  );
}
