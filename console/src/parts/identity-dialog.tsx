/** By which subject of the identity provider a user signs in, beside the password. */
import Alert from '@cloudscape-design/components/alert';
import Box from '@cloudscape-design/components/box';
import FormField from '@cloudscape-design/components/form-field';
import Input from '@cloudscape-design/components/input';
import SpaceBetween from '@cloudscape-design/components/space-between';
import Spinner from '@cloudscape-design/components/spinner';
import { useEffect, useState, type ReactNode } from 'react';

import { api, apiError, take, type Schemas } from '../api/client';
import type { Ways } from '../api/sso';
import { FormDialog } from './form-dialog';
import { useNotices } from './notices';

interface Props {
  user: Schemas['Account'];
  sso: NonNullable<Ways['sso']>;
  onClose: () => void;
  onDone: () => void;
}

/** Links a subject to a user who has none, and unlinks it from a user who has one. */
export function IdentityDialog({ user, sso, onClose, onDone }: Props): ReactNode {
  const [linked, setLinked] = useState<string[] | null>(null);
  const [subject, setSubject] = useState('');
  const [error, setError] = useState<string | null>(null);
  const { done } = useNotices();

  useEffect(() => {
    take(api.GET('/api/v1/users/{user_id}/identities', { params: { path: { user_id: user.id } } })).then(
      ({ items }) => setLinked(items.map((each) => each.subject)),
      (refused: unknown) => setError(apiError(refused).message),
    );
  }, [user.id]);

  const unlinks = linked !== null && linked.length > 0;
  const act = async (): Promise<void> => {
    const params = { path: { user_id: user.id, provider: sso.provider } };
    if (unlinks) await take(api.DELETE('/api/v1/users/{user_id}/identities/{provider}', { params }));
    else await take(api.PUT('/api/v1/users/{user_id}/identities/{provider}', { params, body: { subject } }));
    done(unlinks ? `${user.username} no longer signs in with ${sso.name}.` : `${user.username} signs in with ${sso.name} as ${subject}, too.`);
    onDone();
  };
  return (
    <FormDialog title={`Single sign-on of ${user.username}`} yes={unlinks ? 'Unlink' : 'Link'} fields={['subject']} values={{ subject }} disabled={linked === null} act={act} onClose={onClose}>
      {(errors) => (
        <SpaceBetween size="m">
          {error !== null && <Alert type="error">{error}</Alert>}
          {linked === null && error === null && <Spinner />}
          {unlinks && (
            <Box>
              {user.username} signs in with {sso.name} as <Box variant="code">{linked.join(', ')}</Box>. If you unlink this, all their sessions end within 30 seconds, and they lose the role by their groups.
            </Box>
          )}
          {unlinks && !user.has_password && <Alert type="warning">This user has no password, and cannot sign in without single sign-on.</Alert>}
          {linked?.length === 0 && (
            <FormField
              label="Subject"
              description={`How ${sso.name} names this user: the claim sub (OpenID Connect) or the NameID (SAML).`}
              constraintText="Link it before the first single sign-on: whoever has signed in without a link is a user of their own."
              errorText={errors['subject']}
            >
              <Input value={subject} onChange={({ detail }) => setSubject(detail.value)} autoComplete={false} autoFocus />
            </FormField>
          )}
        </SpaceBetween>
      )}
    </FormDialog>
  );
}
