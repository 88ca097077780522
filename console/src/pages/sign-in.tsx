import Alert from '@cloudscape-design/components/alert';
import Button from '@cloudscape-design/components/button';
import Container from '@cloudscape-design/components/container';
import Form from '@cloudscape-design/components/form';
import FormField from '@cloudscape-design/components/form-field';
import Header from '@cloudscape-design/components/header';
import Input from '@cloudscape-design/components/input';
import SpaceBetween from '@cloudscape-design/components/space-between';
import Spinner from '@cloudscape-design/components/spinner';
import { useEffect, useState, type FormEvent, type ReactNode } from 'react';

import { api, apiError, take, type Schemas } from '../api/client';
import { begin, hasExpired } from '../api/session';
import { comeBack, go, onWaysToSignIn, type Returned, type Ways } from '../api/sso';
import { useTitle } from '../parts/parts';

/** What the address of this page brought back. Its code, and the session that it gives, are used once: a sign-out is not undone. */
let back: Promise<Returned | { refusal: string } | null> | null = null;

export function SignIn(): ReactNode {
  const [username, setUsername] = useState('');
  const [password, setPassword] = useState('');
  const [challenge, setChallenge] = useState<string | null>(null);
  const [code, setCode] = useState('');
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<string | null>(null);
  const [ways, setWays] = useState<Ways | null>(null);
  const [byPassword, setByPassword] = useState(false);
  useTitle('Sign in');

  useEffect(() => {
    let end = (): void => undefined;
    let gone = false;
    back ??= comeBack();
    back
      .then((found) => {
        if (found !== null && 'token' in found) begin({ token: found.token, username: found.username, me: null, signOutUrl: found.signOutUrl });
        else if (found !== null) setError(found.refusal);
      })
      .catch((refused: unknown) => setError(apiError(refused).message))
      .finally(() => {
        back = Promise.resolve(null);
        if (!gone) end = onWaysToSignIn(setWays);
      });
    return () => {
      gone = true;
      end();
    };
  }, []);

  const sign = async (call: () => Promise<Schemas['Session'] | Schemas['Challenge']>): Promise<void> => {
    setBusy(true);
    setError(null);
    try {
      const found = await call();
      if ('challenge' in found) {
        setChallenge(found.session);
        setBusy(false);
      } else {
        begin({ token: found.token, username: found.user.username, me: null });
      }
    } catch (refused) {
      setError(apiError(refused).message);
      setBusy(false);
    }
  };
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (challenge === null) void sign(() => take<Schemas['Session'] | Schemas['Challenge']>(api.POST('/api/v1/auth/login', { body: { username, password, cookie: true } })));
    else void sign(() => take(api.POST('/api/v1/auth/challenge', { body: { session: challenge, code: code.replaceAll(' ', ''), cookie: true } })));
  };
  const again = (): void => {
    setChallenge(null);
    setCode('');
    setPassword('');
    setError(null);
  };

  const sso = ways?.sso ?? null;
  const fields = ways !== null && (sso === null || ways.passwords || byPassword);
  const actions = (
    <SpaceBetween direction="horizontal" size="xs">
      {challenge !== null && <Button variant="link" formAction="none" onClick={again}>Cancel</Button>}
      {fields && <Button variant={sso === null || challenge !== null ? 'primary' : 'normal'} loading={busy} formAction="submit">Sign in</Button>}
    </SpaceBetween>
  );
  return (
    <main className="sign-in">
      <form onSubmit={submit}>
        <Container header={<Header variant="h1" description="Jobs that start on time.">Sign in to Punctual</Header>}>
          <Form actions={actions} errorText={error ?? undefined}>
            <SpaceBetween size="m">
              {hasExpired() && error === null && <Alert type="info">Your session has expired. Sign in to return to the page.</Alert>}
              {ways === null && <Spinner />}
              {sso !== null && challenge === null && (
                <Button variant="primary" formAction="none" fullWidth onClick={() => void go(sso)}>{`Sign in with ${sso.name}`}</Button>
              )}
              {sso !== null && !fields && challenge === null && (
                <Button variant="inline-link" formAction="none" onClick={() => setByPassword(true)}>Administrators: sign in with a password</Button>
              )}
              {fields && challenge === null && (
                <SpaceBetween size="m">
                  <FormField label="User name">
                    <Input value={username} onChange={({ detail }) => setUsername(detail.value)} autoComplete="username" name="username" autoFocus={sso === null} />
                  </FormField>
                  <FormField label="Password">
                    <Input type="password" value={password} onChange={({ detail }) => setPassword(detail.value)} autoComplete="current-password" name="password" />
                  </FormField>
                </SpaceBetween>
              )}
              {challenge !== null && (
                <FormField label="Code" description="The six digits that your program for one-time codes shows now.">
                  <Input value={code} onChange={({ detail }) => setCode(detail.value)} autoComplete="one-time-code" inputMode="numeric" name="code" autoFocus />
                </FormField>
              )}
            </SpaceBetween>
          </Form>
        </Container>
      </form>
    </main>
  );
}
