/** The page that the link of an invitation opens, after the sign-in. */
import Alert from '@cloudscape-design/components/alert';
import Box from '@cloudscape-design/components/box';
import Button from '@cloudscape-design/components/button';
import Container from '@cloudscape-design/components/container';
import Header from '@cloudscape-design/components/header';
import SpaceBetween from '@cloudscape-design/components/space-between';
import { useState, type ReactNode } from 'react';
import { useLocation, useNavigate } from 'react-router';

import { api, apiError, take, type ApiError } from '../api/client';
import { joined } from '../api/me';
import { useSession } from '../api/session';
import { useNotices } from '../parts/notices';
import { pageOfTeam } from '../parts/links';
import { ErrorText, To, useTitle } from '../parts/parts';
import { tokenOf } from '../scopes';
import { teamRoleInWords } from '../teams';

export default function InvitationPage(): ReactNode {
  useTitle('Invitation');
  const token = tokenOf(useLocation().hash);
  const navigate = useNavigate();
  const session = useSession();
  const { done } = useNotices();
  const [busy, setBusy] = useState(false);
  const [refused, setRefused] = useState<ApiError | null>(null);
  const accept = async (): Promise<void> => {
    setBusy(true);
    setRefused(null);
    try {
      const team = await take(api.POST('/api/v1/invitations/accept', { body: { token } }));
      joined(team);
      done(`You are now ${teamRoleInWords(team.role).toLowerCase()} of “${team.name}”.`);
      void navigate(pageOfTeam(team.id), { replace: true }); // the token is used, and nothing to return to
    } catch (error) {
      setRefused(apiError(error));
      setBusy(false);
    }
  };
  return (
    <SpaceBetween size="l">
      <Header variant="h1">Invitation to a team</Header>
      {token === '' ? (
        <Alert type="info" header="The link is not complete">Open the whole link that you got, with all that follows <Box variant="code">#</Box>.</Alert>
      ) : (
        <Container>
          <SpaceBetween size="m">
            <Box>You are signed in as <b>{session?.username ?? ''}</b>. As a member of the team you see its tasks and jobs, and its members see your name.</Box>
            {refused !== null && <Alert type="error" header="You did not join the team"><ErrorText error={refused} /> <To href="/teams">My teams</To></Alert>}
            <Button variant="primary" loading={busy} onClick={() => void accept()}>Accept the invitation</Button>
          </SpaceBetween>
        </Container>
      )}
    </SpaceBetween>
  );
}
