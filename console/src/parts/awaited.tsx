/** The ECS task or the execution that a job awaits, and how it ended. */
import Alert from '@cloudscape-design/components/alert';
import Box from '@cloudscape-design/components/box';
import ContainerBox from '@cloudscape-design/components/container';
import Header from '@cloudscape-design/components/header';
import KeyValuePairs from '@cloudscape-design/components/key-value-pairs';
import SpaceBetween from '@cloudscape-design/components/space-between';
import StatusIndicator from '@cloudscape-design/components/status-indicator';
import type { ReactNode } from 'react';

import { exitInWords, startedBy, stopInWords, type Awaiting, type Container, type Started } from '../awaited';
import { DocsLink } from './docs-link';
import { Words } from './parts';
import { isFinal } from './status';
import { between, When } from './time';

const NAMES = { ecs: { header: 'Container', page: 'Task in the console of ECS' }, stepfunctions: { header: 'Execution', page: 'Execution in the console of Step Functions' } };

export function InAws({ job }: { job: Awaiting }): ReactNode {
  const started = startedBy(job);
  if (started === null) return null;
  const names = NAMES[started.service];
  return (
    <ContainerBox header={<Header variant="h2">{names.header}</Header>}>
      <SpaceBetween size="m">
        {started.stopping !== null && <Alert type="info" header="Being stopped"><Words>{started.stopping}</Words></Alert>}
        <KeyValuePairs
          columns={4}
          items={[
            { label: 'State in AWS', value: <State started={started} ended={isFinal(job)} /> },
            { label: 'Started', value: <When at={started.startedAt} exact /> },
            { label: 'Stopped', value: <When at={started.stoppedAt} exact /> },
            { label: 'Duration', value: between(started.startedAt, started.stoppedAt) },
            ...(started.stopCode === null && started.stoppedReason === null ? [] : [{ label: 'Why it stopped', value: <Why started={started} /> }]),
            { label: 'In AWS', value: started.page === null ? <Words>{started.arn}</Words> : <DocsLink href={started.page}>{names.page}</DocsLink> },
          ]}
        />
        {started.containers.map((container) => <One key={container.name} container={container} stopped={started.stoppedAt !== null} />)}
      </SpaceBetween>
    </ContainerBox>
  );
}

function State({ started: { status, stoppedAt }, ended }: { started: Started; ended: boolean }): ReactNode {
  const over = stoppedAt !== null || ended;
  return <StatusIndicator type={over ? 'stopped' : 'in-progress'}>{status ?? (over ? 'Ended' : 'Running')}</StatusIndicator>;
}

function Why({ started: { stopCode, stoppedReason } }: { started: Started }): ReactNode {
  return (
    <>
      {stopCode !== null && <div>{stopInWords(stopCode)}</div>}
      {stoppedReason !== null && <Box color="text-body-secondary" fontSize="body-s"><Words>{stoppedReason}</Words></Box>}
    </>
  );
}

function One({ container: { name, exitCode, reason, log }, stopped }: { container: Container; stopped: boolean }): ReactNode {
  const exit = exitCode !== null
    ? <StatusIndicator type={exitCode === 0 ? 'success' : 'error'}>{exitInWords(exitCode)}</StatusIndicator>
    : stopped ? <StatusIndicator type="warning">No exit code: it did not run to its end</StatusIndicator> : 'Not yet';
  return (
    <KeyValuePairs
      columns={4}
      items={[
        { label: 'Container', value: <Words>{name}</Words> },
        { label: 'Exit code', value: exit },
        { label: 'Reason', value: <Words>{reason ?? '–'}</Words> },
        { label: 'Log', value: log === null ? '–' : <DocsLink href={log}>Log stream in CloudWatch</DocsLink> },
      ]}
    />
  );
}
