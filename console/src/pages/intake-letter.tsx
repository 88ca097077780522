/** One refused message of an intake queue: why, its body, and what to do with it. */
import Alert from '@cloudscape-design/components/alert';
import Box from '@cloudscape-design/components/box';
import Button from '@cloudscape-design/components/button';
import Container from '@cloudscape-design/components/container';
import FormField from '@cloudscape-design/components/form-field';
import Header from '@cloudscape-design/components/header';
import KeyValuePairs from '@cloudscape-design/components/key-value-pairs';
import SpaceBetween from '@cloudscape-design/components/space-between';
import Textarea from '@cloudscape-design/components/textarea';
import { useState, type ReactNode } from 'react';
import { useNavigate, useParams } from 'react-router';

import { api, apiError, take, type ApiError, type Schemas } from '../api/client';
import { read } from '../exact';
import { useLive } from '../live';
import { ofOwner } from '../parts/links';
import { useNotices } from '../parts/notices';
import { ErrorText, Loaded, pretty, useTitle, Words } from '../parts/parts';
import { When } from '../parts/time';
import { useWhose } from '../parts/whose';

type Letter = Schemas['IntakeLetterDetail'];
type Body = Record<string, unknown>;

const ROWS = 16;

/** The object in a text, or null if it is no JSON object. */
export function bodyOf(text: string): Body | null {
  try {
    const found: unknown = read(text);
    return typeof found === 'object' && found !== null && !Array.isArray(found) ? (found as Body) : null;
  } catch {
    return null;
  }
}

export default function IntakeLetterPage(): ReactNode {
  const { id = '' } = useParams();
  useTitle('Refused message');
  const { owner } = useWhose();
  const live = useLive(`intake letter ${id} ${owner ?? ''}`, () => take(api.GET('/api/v1/intake/dead-letters/{message_id}', { params: { path: { message_id: id }, query: { owner } } })), 0);
  return <Loaded live={live} what="message">{(letter) => <Shown key={`${letter.message_id} ${letter.accepted}`} letter={letter} reload={live.reload} />}</Loaded>;
}

function Shown({ letter, reload }: { letter: Letter; reload: () => void }): ReactNode {
  const { owner, mayChange } = useWhose();
  const { done, failed } = useNotices();
  const navigate = useNavigate();
  const sent = pretty(letter.body);
  const [text, setText] = useState(sent);
  const [busy, setBusy] = useState(false);
  const [refused, setRefused] = useState<ApiError | null>(null);
  const params = { path: { message_id: letter.message_id }, query: { owner } };
  const back = (): void => void navigate(`/dead-letters/intake${ofOwner(owner)}`);
  const unchanged = text === sent && !letter.cut;
  const body = bodyOf(text);
  const retry = async (): Promise<void> => {
    setBusy(true);
    setRefused(null);
    try {
      const made = await take(api.POST('/api/v1/intake/dead-letters/{message_id}/retry', { params, body: unchanged ? {} : { body } }));
      done(made.accepted === 1 ? '1 job is created.' : `${made.accepted} jobs are created.`);
      if (made.refused === 0) back();
      else reload();
    } catch (error) {
      setRefused(apiError(error));
    }
    setBusy(false);
  };
  const remove = async (): Promise<void> => {
    try {
      await take(api.DELETE('/api/v1/intake/dead-letters/{message_id}', { params }));
      done('The message is deleted.');
      back();
    } catch (error) {
      failed('Not deleted', error);
    }
  };
  return (
    <SpaceBetween size="m">
      <Header
        variant="h1"
        description={letter.accepted > 0 ? `${letter.accepted} other jobs of this batch were created.` : undefined}
        actions={
          mayChange && (
            <SpaceBetween direction="horizontal" size="xs">
              <Button onClick={() => void remove()}>Delete</Button>
              <Button variant="primary" loading={busy} disabled={!unchanged && body === null} onClick={() => void retry()}>
                {unchanged ? 'Try again' : 'Try again with this body'}
              </Button>
            </SpaceBetween>
          )
        }
      >
        Refused message
      </Header>
      {refused !== null && (
        <Alert type="error" header="No job was created">
          <ErrorText error={refused} />
        </Alert>
      )}
      <Container header={<Header variant="h2">Errors</Header>}>
        <SpaceBetween size="xs">
          {letter.errors.map(({ field, rule }, index) => (
            <Words key={index}>
              <Box variant="strong">{field}</Box> {rule}
            </Words>
          ))}
        </SpaceBetween>
      </Container>
      <Container header={<Header variant="h2">Message</Header>}>
        <SpaceBetween size="m">
          <KeyValuePairs
            columns={3}
            items={[
              { label: 'Message', value: <Words>{letter.message_id}</Words> },
              { label: 'Queue', value: letter.queue },
              { label: 'Sender', value: <Words>{letter.sender}</Words> },
              { label: 'Owner', value: <Words>{letter.owner ?? 'unknown'}</Words> },
              { label: 'Sent', value: <When at={letter.sent_at} /> },
              { label: 'Deliveries', value: letter.received },
            ]}
          />
          <FormField
            stretch
            label="Body"
            constraintText="A delay is counted from the time at which the message was sent."
            warningText={letter.cut ? 'The end of the body is missing: only 64 KB are stored.' : undefined}
            errorText={!unchanged && body === null ? 'must be a JSON object' : undefined}
          >
            <Textarea value={text} rows={ROWS} readOnly={!mayChange} spellcheck={false} onChange={({ detail }) => setText(detail.value)} />
          </FormField>
        </SpaceBetween>
      </Container>
    </SpaceBetween>
  );
}
