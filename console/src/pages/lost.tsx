import Alert from '@cloudscape-design/components/alert';
import type { ReactNode } from 'react';

import { mayOversee, useRole } from '../api/session';
import { NotForRole, To, useTitle } from '../parts/parts';

export function Lost(): ReactNode {
  useTitle('Not found');
  return (
    <Alert type="info" header="There is no such page">
      Go to your <To href="/tasks">tasks</To>.
    </Alert>
  );
}

/** A page that the API would refuse to everybody else. */
export function ForOperators({ children }: { children: ReactNode }): ReactNode {
  return mayOversee(useRole()) ? children : <Refused />;
}

function Refused(): ReactNode {
  useTitle('Not for your role');
  return <NotForRole text="Operators and administrators see this page. Ask an administrator if you need it." />;
}
