import Alert from '@cloudscape-design/components/alert';
import Button from '@cloudscape-design/components/button';
import Container from '@cloudscape-design/components/container';
import Form from '@cloudscape-design/components/form';
import FormField from '@cloudscape-design/components/form-field';
import Header from '@cloudscape-design/components/header';
import Input from '@cloudscape-design/components/input';
import SpaceBetween from '@cloudscape-design/components/space-between';
import { useState, type FormEvent, type ReactNode } from 'react';

import { api, apiError, take } from '../api/client';
import { begin, hasExpired } from '../api/session';
import { useTitle } from '../parts/parts';

export function SignIn(): ReactNode {
  const [username, setUsername] = useState('');
  const [password, setPassword] = useState('');
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<string | null>(null);
  useTitle('Sign in');

  const submit = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    setBusy(true);
    setError(null);
    try {
      const found = await take(api.POST('/api/v1/auth/login', { body: { username, password, cookie: true } }));
      begin({ token: found.token, username: found.user.username });
    } catch (refused) {
      setError(apiError(refused).message);
      setBusy(false);
    }
  };

  return (
    <main className="sign-in">
      <form onSubmit={(event) => void submit(event)}>
        <Container header={<Header variant="h1" description="Jobs that start on time.">Sign in to Punctual</Header>}>
          <Form actions={<Button variant="primary" loading={busy} formAction="submit">Sign in</Button>} errorText={error ?? undefined}>
            <SpaceBetween size="m">
              {hasExpired() && error === null && <Alert type="info">Your session has expired. Sign in to return to the page.</Alert>}
              <FormField label="User name">
                <Input value={username} onChange={({ detail }) => setUsername(detail.value)} autoComplete="username" name="username" autoFocus />
              </FormField>
              <FormField label="Password">
                <Input type="password" value={password} onChange={({ detail }) => setPassword(detail.value)} autoComplete="current-password" name="password" />
              </FormField>
            </SpaceBetween>
          </Form>
        </Container>
      </form>
    </main>
  );
}
