/** The default alerts of an owner: shown, and changed in a dialog. */
import Button from '@cloudscape-design/components/button';
import Checkbox from '@cloudscape-design/components/checkbox';
import Container from '@cloudscape-design/components/container';
import Header from '@cloudscape-design/components/header';
import SpaceBetween from '@cloudscape-design/components/space-between';
import { useState, type ReactNode } from 'react';

import { api, take, type Schemas } from '../api/client';
import { fromAlerts, rulesOf, toDefaultAlerts } from '../form/alerts';
import { Seconds } from '../form/numbers';
import { useLive } from '../live';
import { FormDialog } from './form-dialog';
import { useNotices } from './notices';
import { Loaded } from './parts';
import { OfWhom } from './whose';

const FIELDS = ['late_after_seconds', 'max_duration_seconds', 'missed'];

interface Props {
  owner: string | undefined;
  mayChange: boolean;
}

export function DefaultAlerts({ owner, mayChange }: Props): ReactNode {
  const live = useLive(`default alerts ${owner ?? ''}`, () => take(api.GET('/api/v1/default-alerts', { params: { query: { owner } } })), 60_000);
  const [open, setOpen] = useState(false);
  return (
    <Container
      header={
        <Header
          variant="h2"
          description="Rules about time for the tasks that have notifications, and no alerts of their own."
          actions={mayChange && <Button disabled={live.data === null} onClick={() => setOpen(true)}>Change default alerts</Button>}
        >
          Default alerts
        </Header>
      }
    >
      {open && live.data !== null && <AlertsDialog owner={owner} before={live.data} onClose={() => setOpen(false)} onStored={live.reload} />}
      <Loaded live={live} what="default alerts">
        {(alerts) => {
          const rules = rulesOf(alerts);
          return <>{rules.length === 0 ? 'None.' : `Alerts if a run ${rules.join('; ')}.`}</>;
        }}
      </Loaded>
    </Container>
  );
}

interface DialogProps {
  owner: string | undefined;
  before: Schemas['DefaultAlerts'];
  onClose: () => void;
  onStored: () => void;
}

function AlertsDialog({ owner, before, onClose, onStored }: DialogProps): ReactNode {
  const [draft, setDraft] = useState(fromAlerts(before));
  const { done } = useNotices();
  const body = toDefaultAlerts(draft);
  const act = async (): Promise<void> => {
    const stored = await take(api.PUT('/api/v1/default-alerts', { params: { query: { owner } }, body }));
    if (stored.operation !== null) done('The default alerts are stored. An operation replaces the future runs of their tasks.');
    onStored();
  };
  return (
    <FormDialog title="Change the default alerts" yes="Save" fields={FIELDS} values={body} act={act} onClose={onClose}>
      {(errors) => (
        <SpaceBetween size="m">
          <OfWhom />
          <Seconds label="Late after (s)" value={draft.lateAfter} error={errors['late_after_seconds']} onChange={(lateAfter) => setDraft({ ...draft, lateAfter })} />
          <Seconds label="Too long after (s)" value={draft.maxDuration} error={errors['max_duration_seconds']} onChange={(maxDuration) => setDraft({ ...draft, maxDuration })} />
          <Checkbox checked={draft.missed} description="Runs that were skipped because they could not start in time" onChange={({ detail }) => setDraft({ ...draft, missed: detail.checked })}>
            Alert on missed runs
          </Checkbox>
        </SpaceBetween>
      )}
    </FormDialog>
  );
}
