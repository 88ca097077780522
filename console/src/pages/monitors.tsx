import Alert from '@cloudscape-design/components/alert';
import Box from '@cloudscape-design/components/box';
import Button from '@cloudscape-design/components/button';
import ColumnLayout from '@cloudscape-design/components/column-layout';
import CopyToClipboard from '@cloudscape-design/components/copy-to-clipboard';
import FormField from '@cloudscape-design/components/form-field';
import Header from '@cloudscape-design/components/header';
import Input from '@cloudscape-design/components/input';
import Modal from '@cloudscape-design/components/modal';
import Pagination from '@cloudscape-design/components/pagination';
import Select from '@cloudscape-design/components/select';
import SpaceBetween from '@cloudscape-design/components/space-between';
import StatusIndicator, { type StatusIndicatorProps } from '@cloudscape-design/components/status-indicator';
import Table from '@cloudscape-design/components/table';
import { useState, type ReactNode } from 'react';

import { api, take, type Schemas } from '../api/client';
import { pageOfDocs } from '../docs';
import { blank, FIELDS, fromMonitor, namesAnyone, settled, toRequest, withName, type Monitor, type MonitorDraft, type Rhythm } from '../form/monitor-draft';
import { DefaultReceivers, ReceiverNames, useDefaultReceivers } from '../form/names';
import { Seconds } from '../form/numbers';
import { useLive } from '../live';
import { DocsLink } from '../parts/docs-link';
import { FormDialog } from '../parts/form-dialog';
import { useNotices } from '../parts/notices';
import { usePages } from '../parts/pages';
import { Code, Empty, Failed, Loaded, NotForRole, Stale, useConfirm, useTitle, Words } from '../parts/parts';
import { Ago, VIEWERS_ZONE, When } from '../parts/time';
import { Refresh } from '../parts/trail';
import { OfWhom, useWhose, WhoseChoice } from '../parts/whose';
import { span } from '../words';

type Event = Schemas['MonitorEvent'];
type State = Monitor['state'];

const STATES: Record<State, { type: StatusIndicatorProps.Type; text: string }> = {
  new: { type: 'pending', text: 'Waits for its first ping' },
  up: { type: 'success', text: 'Up' },
  long: { type: 'warning', text: 'Runs too long' },
  down: { type: 'error', text: 'Down: no ping has come' },
  failed: { type: 'error', text: 'Failed' },
  paused: { type: 'stopped', text: 'Paused' },
};
const EVENTS: Record<Event['kind'], string> = {
  start: 'Start',
  success: 'Success',
  fail: 'Failure',
  new: 'A new period begins',
  paused: 'Paused',
  up: 'Up',
  long: 'Runs too long',
  down: 'Down',
  failed: 'Failed',
};
const RHYTHMS: { value: Rhythm; label: string }[] = [
  { value: 'period', label: 'At least once in a period' },
  { value: 'cron', label: 'By cron' },
];
const KEPT = { value: 'kept' as const, label: 'By its schedule, as it is' };
const PAGE = 50;

/** Work that runs elsewhere and pings: who is silent, and since when. */
export default function Monitors(): ReactNode {
  useTitle('Monitors');
  const { owner, mayChange } = useWhose();
  const pages = usePages(owner ?? '');
  const query = { owner, limit: PAGE, cursor: pages.cursor };
  const live = useLive(`monitors ${owner ?? ''} ${pages.cursor ?? ''}`, () => take(api.GET('/api/v1/monitors', { params: { query } })));
  const [edited, setEdited] = useState<Monitor | 'new' | null>(null);
  const [opened, setOpened] = useState<Monitor | null>(null);
  const [dialog, confirm] = useConfirm();
  const { done, failed } = useNotices();
  const carry = async (act: () => Promise<unknown>, told: string, not: string): Promise<void> => {
    try {
      await act();
      done(told);
    } catch (error) {
      failed(not, error);
    }
    live.reload();
  };
  const params = ({ key }: Monitor) => ({ params: { path: { key }, query: { owner } } });
  const pause = (monitor: Monitor): Promise<void> =>
    carry(() => take(api.POST('/api/v1/monitors/{key}/pause', params(monitor))), `Paused “${monitor.name}”.`, `“${monitor.name}” was not paused`);
  const resume = (monitor: Monitor): Promise<void> =>
    carry(() => take(api.POST('/api/v1/monitors/{key}/resume', params(monitor))), `Resumed “${monitor.name}”. A new period begins.`, `“${monitor.name}” was not resumed`);
  const remove = (monitor: Monitor): Promise<void> =>
    carry(() => take(api.DELETE('/api/v1/monitors/{key}', params(monitor))), `Deleted “${monitor.name}”.`, `“${monitor.name}” was not deleted`);
  if (live.error?.status === 403) return <NotForRole text={live.error.message} />;
  return (
    <SpaceBetween size="m">
      {dialog}
      {edited !== null && <MonitorDialog owner={owner} before={edited === 'new' ? null : edited} onClose={() => setEdited(null)} onStored={(stored) => { live.reload(); if (edited === 'new') setOpened(stored); }} />}
      {opened !== null && <Opened owner={owner} monitor={opened} onClose={() => setOpened(null)} />}
      <Table<Monitor>
        variant="full-page"
        stickyHeader
        contentDensity="compact"
        wrapLines
        trackBy="key"
        items={live.data?.items ?? []}
        loading={live.loading}
        loadingText="Loading monitors"
        ariaLabels={{ tableLabel: 'Monitors', selectionGroupLabel: '' }}
        header={
          <SpaceBetween size="xs">
            <Header
              variant="awsui-h1-sticky"
              description={<><OfWhom />Work that runs elsewhere pings a URL. Receivers are notified of silence.</>}
              actions={
                <SpaceBetween direction="horizontal" size="xs">
                  <Refresh live={live} />
                  {mayChange && <Button variant="primary" onClick={() => setEdited('new')}>Create monitor</Button>}
                </SpaceBetween>
              }
            >
              Monitors
            </Header>
            <Stale live={live} />
          </SpaceBetween>
        }
        filter={<div className="filters"><WhoseChoice single /></div>}
        pagination={<Pagination {...pages.bar(live.data?.cursor)} ariaLabels={{ nextPageLabel: 'Next page', previousPageLabel: 'Previous page', pageLabel: (n) => `Page ${n}` }} />}
        empty={live.error !== null && live.data === null ? <Failed error={live.error} what="monitors" retry={live.reload} /> : (
          <Empty title="No monitors">
            <Box variant="p" color="inherit">A monitor watches a backup, a script or a cron job on any machine: it pings when it has run.</Box>
            {mayChange && <Button onClick={() => setEdited('new')}>Create a monitor</Button>}
            <DocsLink href={pageOfDocs('guides/monitors')}>Monitors</DocsLink>
          </Empty>
        )}
        columnDefinitions={[
          { id: 'name', header: 'Name', isRowHeader: true, cell: (monitor) => <><Words>{monitor.name}</Words><Box color="text-body-secondary" fontSize="body-s"><Words>{monitor.key}</Words></Box></>, minWidth: 140 },
          { id: 'state', header: 'State', cell: (monitor) => <StateOf monitor={monitor} />, minWidth: 170 },
          { id: 'expected', header: 'Next ping expected', cell: ({ expected_at }) => <When at={expected_at} /> },
          { id: 'pinged', header: 'Last ping', cell: ({ pinged_at }) => (pinged_at === null ? 'Never' : <Ago at={pinged_at} />) },
          {
            id: 'action',
            header: 'Action',
            cell: (monitor) => (
              <SpaceBetween direction="horizontal" size="s">
                <Button variant="inline-link" ariaLabel={`Open ${monitor.name}`} onClick={() => setOpened(monitor)}>Open</Button>
                {mayChange && (
                  <SpaceBetween direction="horizontal" size="s">
                    {monitor.state === 'paused' ? (
                      <Button variant="inline-link" ariaLabel={`Resume ${monitor.name}`} onClick={() => void resume(monitor)}>Resume</Button>
                    ) : (
                      <Button variant="inline-link" ariaLabel={`Pause ${monitor.name}`} onClick={() => void pause(monitor)}>Pause</Button>
                    )}
                    <Button variant="inline-link" ariaLabel={`Change ${monitor.name}`} onClick={() => setEdited(monitor)}>Change</Button>
                    <Button
                      variant="inline-link"
                      ariaLabel={`Delete ${monitor.name}`}
                      onClick={() => confirm({ title: `Delete “${monitor.name}”?`, text: 'Its ping URL is invalid from then on.', yes: 'Delete', act: () => remove(monitor) })}
                    >
                      Delete
                    </Button>
                  </SpaceBetween>
                )}
              </SpaceBetween>
            ),
          },
        ]}
      />
    </SpaceBetween>
  );
}

function StateOf({ monitor: { state, since, flapping, warning } }: { monitor: Monitor }): ReactNode {
  const { type, text } = STATES[state];
  return (
    <>
      <StatusIndicator type={type}>{text}</StatusIndicator>
      <Box color="text-body-secondary" fontSize="body-s">since <When at={since} /></Box>
      {flapping && <Box color="text-body-secondary" fontSize="body-s">It changes again and again: no notices until it is stable.</Box>}
      {warning !== null && <Box color="text-status-warning" fontSize="body-s"><Words>{warning}</Words></Box>}
    </>
  );
}

interface OpenedProps {
  owner: string | undefined;
  monitor: Monitor;
  onClose: () => void;
}

/** The ping URL and the last pings. */
function Opened({ owner, monitor: { key, name, ping_path, next_expected }, onClose }: OpenedProps): ReactNode {
  const url = `${window.location.origin}${ping_path ?? ''}`;
  const history = useLive(`monitor history ${owner ?? ''} ${key}`, () => take(api.GET('/api/v1/monitors/{key}/history', { params: { path: { key }, query: { owner } } })));
  return (
    <Modal visible size="large" onDismiss={onClose} header={name} closeAriaLabel="Close">
      <SpaceBetween size="m">
        {ping_path === null ? (
          <Alert type="info">The ping URL is valid, but its key was rotated: it cannot be shown. A new token can be made by the API.</Alert>
        ) : (
          <FormField
            label="Ping URL"
            description="Append /start, /fail or an exit code. Everybody who knows this URL can ping."
            stretch
            secondaryControl={<CopyToClipboard copyButtonAriaLabel="Copy: Ping URL" copyButtonText="Copy" copySuccessText="Copied" copyErrorText="Not copied" textToCopy={url} />}
          >
            <Code label="Ping URL" text={url} />
          </FormField>
        )}
        {next_expected.length > 0 && (
          <FormField label="Next expected pings" stretch>
            <ul>{next_expected.map(({ nominal, local_at }) => <li key={nominal}>{local_at}</li>)}</ul>
          </FormField>
        )}
        <Loaded live={history} what="pings">
          {({ items }) => (
            <Table<Event>
              variant="embedded"
              contentDensity="compact"
              wrapLines
              items={items}
              ariaLabels={{ tableLabel: 'Pings and changes', selectionGroupLabel: '' }}
              empty={<Empty title="No pings yet" />}
              columnDefinitions={[
                { id: 'at', header: 'When', cell: ({ at }) => <When at={at} exact /> },
                { id: 'kind', header: 'Ping or change', isRowHeader: true, cell: ({ kind, exit_code }) => `${EVENTS[kind]}${exit_code === null ? '' : `, exit code ${exit_code}`}` },
                { id: 'duration', header: 'Duration', cell: ({ duration_seconds }) => (duration_seconds === null ? '–' : span(duration_seconds * 1_000)) },
                { id: 'text', header: 'Text', cell: ({ body }) => (body === '' ? '–' : <Words>{body}</Words>), maxWidth: 320 },
              ]}
            />
          )}
        </Loaded>
      </SpaceBetween>
    </Modal>
  );
}

interface DialogProps {
  owner: string | undefined;
  /** Null: a new one. */
  before: Monitor | null;
  onClose: () => void;
  onStored: (monitor: Monitor) => void;
}

function MonitorDialog({ owner, before, onClose, onStored }: DialogProps): ReactNode {
  const [typed, setDraft] = useState<MonitorDraft>(before === null ? blank(VIEWERS_ZONE) : fromMonitor(before, VIEWERS_ZONE));
  const defaults = useDefaultReceivers(owner);
  const draft = settled(typed, defaults);
  const set = (changes: Partial<MonitorDraft>): void => setDraft({ ...typed, ...changes });
  const body = toRequest(draft, before);
  const rhythms = draft.rhythm === 'kept' || (before !== null && fromMonitor(before, '').rhythm === 'kept') ? [...RHYTHMS, KEPT] : RHYTHMS;
  const act = async (): Promise<void> => onStored(await take(api.PUT('/api/v1/monitors/{key}', { params: { path: { key: draft.key.trim() }, query: { owner } }, body })));
  return (
    <FormDialog title={before === null ? 'Create a monitor' : `Change “${before.name}”`} yes={before === null ? 'Create' : 'Save'} fields={FIELDS} values={{ ...body, key: draft.key }} disabled={draft.key.trim() === '' || draft.name.trim() === ''} act={act} onClose={onClose}>
      {(errors) => (
        <SpaceBetween size="m">
          <OfWhom />
          <FormField label="Name" errorText={errors['name']}>
            <Input value={draft.name} autoComplete={false} autoFocus={before === null} onChange={({ detail }) => setDraft(withName(typed, detail.value, before))} />
          </FormField>
          <FormField label="Key" description="It never changes" errorText={errors['key']}>
            <Input value={draft.key} disabled={before !== null} spellcheck={false} autoComplete={false} onChange={({ detail }) => set({ key: detail.value })} />
          </FormField>
          <FormField label="Pings are expected">
            <Select options={rhythms} selectedOption={rhythms.find(({ value }) => value === draft.rhythm) ?? null} onChange={({ detail }) => set({ rhythm: detail.selectedOption.value as Rhythm })} />
          </FormField>
          {draft.rhythm === 'period' && (
            <Seconds label="Period (s)" value={draft.period} error={errors['period_seconds']} onChange={(period) => set({ period })} />
          )}
          {draft.rhythm === 'cron' && (
            <ColumnLayout columns={2}>
              <FormField label="Cron" errorText={errors['schedule.cron']}>
                <Input value={draft.cron} spellcheck={false} onChange={({ detail }) => set({ cron: detail.value })} />
              </FormField>
              <FormField label="Time zone" errorText={errors['schedule.time_zone']}>
                <Input value={draft.zone} spellcheck={false} onChange={({ detail }) => set({ zone: detail.value })} />
              </FormField>
            </ColumnLayout>
          )}
          <ColumnLayout columns={2}>
            <Seconds label="Grace (s)" description="By which a ping may be late" value={draft.grace} error={errors['grace_seconds']} onChange={(grace) => set({ grace })} />
            <Seconds label="Longest duration (s)" description="From a start to its end" value={draft.maxDuration} error={errors['max_duration_seconds']} onChange={(maxDuration) => set({ maxDuration })} />
          </ColumnLayout>
          <FormField label="Named receivers" errorText={errors['notifications.receivers']}>
            <ReceiverNames owner={owner} names={draft.receivers} onChange={(receivers) => set({ receivers })} />
          </FormField>
          <FormField label="E-mail addresses" description="Separated by commas" errorText={errors['notifications.emails']}>
            <Input value={draft.emails} spellcheck={false} onChange={({ detail }) => set({ emails: detail.value })} />
          </FormField>
          {!namesAnyone(draft, before) && (
            <FormField errorText={errors['notifications']} stretch>
              <DefaultReceivers names={defaults} checked={draft.byDefault} onChange={(byDefault) => set({ byDefault })} />
            </FormField>
          )}
          {!namesAnyone(draft, before) && !draft.byDefault && <Alert type="warning">Nobody is notified when the pings stop.</Alert>}
        </SpaceBetween>
      )}
    </FormDialog>
  );
}
