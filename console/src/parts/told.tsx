/** The receivers of notifications about a job or a task's runs, and what they are notified of. */
import Box from '@cloudscape-design/components/box';
import KeyValuePairs from '@cloudscape-design/components/key-value-pairs';
import type { ReactNode } from 'react';

import { OCCASIONS, type Notifications } from '../form/notifications';
import { span } from '../words';

export function Told({ notifications: { emails, webhooks, receivers, on, after_failures, digest_seconds } }: { notifications: Notifications }): ReactNode {
  return (
    <KeyValuePairs
      columns={4}
      items={[
        { label: 'E-mail addresses', value: emails.length === 0 ? '–' : emails.map((address) => <div key={address} className="words">{address}</div>) },
        { label: 'Webhooks', value: webhooks.length === 0 ? '–' : webhooks.map(({ url, signing_secret, format }) => <div key={`${url} ${signing_secret}`} className="words">{url}<Box color="text-body-secondary" fontSize="body-s">{format === 'slack' ? 'Slack format, ' : format === 'teams' ? 'Teams format, ' : ''}{signing_secret === null ? 'not signed' : `signed with ${signing_secret}`}</Box></div>) },
        { label: 'Named receivers', value: receivers.length > 0 ? receivers.join(', ') : emails.length + webhooks.length > 0 ? '–' : 'the default receivers' },
        { label: 'Notify on', value: <>{on.map((occasion) => OCCASIONS[occasion]?.short ?? occasion).join(', ')}{after_failures > 1 && <Box color="text-body-secondary" fontSize="body-s">after {after_failures} failures in a row</Box>}</> },
        { label: 'Notify at most every', value: span(digest_seconds * 1_000) },
      ]}
    />
  );
}
