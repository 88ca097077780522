/** The second factor of one's own account: a program on a phone shows codes. */
import Alert from '@cloudscape-design/components/alert';
import Box from '@cloudscape-design/components/box';
import FormField from '@cloudscape-design/components/form-field';
import Input from '@cloudscape-design/components/input';
import SpaceBetween from '@cloudscape-design/components/space-between';
import Spinner from '@cloudscape-design/components/spinner';
import { useEffect, useState, type ReactNode } from 'react';
import { encode } from 'uqr';

import { api, apiError, take, type Schemas } from '../api/client';
import { FormDialog } from './form-dialog';
import { useNotices } from './notices';

const FIELDS = ['current_password', 'code'];

export default function SecondFactorDialog({ onClose }: { onClose: () => void }): ReactNode {
  const [found, setFound] = useState<Schemas['SecondFactor'] | null>(null);
  const [begun, setBegun] = useState<Schemas['BegunSecondFactor'] | null>(null);
  const [password, setPassword] = useState('');
  const [code, setCode] = useState('');
  const [error, setError] = useState<string | null>(null);
  const { done } = useNotices();

  useEffect(() => {
    take(api.GET('/api/v1/auth/totp')).then(setFound, (refused: unknown) => setError(apiError(refused).message));
  }, []);

  const proof = { current_password: password, code: code.replaceAll(' ', '') };
  const act = async (): Promise<boolean> => {
    if (found?.enabled) {
      await take(api.POST('/api/v1/auth/totp/disable', { body: proof }));
      done('Your second factor is off.');
    } else if (begun === null) {
      setBegun(await take(api.POST('/api/v1/auth/totp', { body: { current_password: password } })));
      return false; // the dialog goes on with the code
    } else {
      await take(api.PUT('/api/v1/auth/totp', { body: proof }));
      done('Your second factor is on. From now on you need a code to sign in.');
    }
    return true;
  };

  const title = found?.enabled ? 'Switch the second factor off' : 'Switch a second factor on';
  const yes = found?.enabled ? 'Switch off' : begun === null ? 'Continue' : 'Switch on';
  return (
    <FormDialog title={title} yes={yes} fields={FIELDS} values={proof} act={act} onClose={onClose}>
      {(errors) => (
        <SpaceBetween size="m">
          {error !== null && <Alert type="error">{error}</Alert>}
          {found === null && error === null && <Spinner />}
          {found !== null && !found.possible && <Alert type="info">You sign in with the identity provider of your organization, which asks for further factors itself.</Alert>}
          {found?.possible && begun === null && (
            <FormField label="Current password" errorText={errors['current_password']}>
              <Input type="password" value={password} onChange={({ detail }) => setPassword(detail.value)} autoComplete="current-password" autoFocus />
            </FormField>
          )}
          {begun !== null && (
            <SpaceBetween size="xs">
              <Box>Scan this code with a program for one-time codes, or type the key into it.</Box>
              <QrCode text={begun.uri} />
              <div><Box variant="code">{begun.secret.replace(/(.{4})(?=.)/g, '$1 ')}</Box></div>
            </SpaceBetween>
          )}
          {(begun !== null || (found?.possible && found.enabled)) && (
            <FormField label="Code" description="The six digits that the program shows now." errorText={errors['code']}>
              <Input value={code} onChange={({ detail }) => setCode(detail.value)} autoComplete="one-time-code" inputMode="numeric" name="code" />
            </FormField>
          )}
        </SpaceBetween>
      )}
    </FormDialog>
  );
}

/** Dark squares on white, also in dark mode: cameras need the contrast. */
function QrCode({ text }: { text: string }): ReactNode {
  const { size, data } = encode(text, { ecc: 'M', border: 4 });
  const squares = data.flatMap((row, y) => row.flatMap((dark, x) => (dark ? [`M${x} ${y}h1v1h-1z`] : []))).join('');
  return (
    <svg viewBox={`0 0 ${size} ${size}`} width="220" height="220" role="img" aria-label="QR code of the key below" shapeRendering="crispEdges">
      <rect width={size} height={size} fill="white" />
      <path d={squares} fill="black" />
    </svg>
  );
}
