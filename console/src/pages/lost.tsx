import Alert from '@cloudscape-design/components/alert';
import type { ReactNode } from 'react';

import { To, useTitle } from '../parts/parts';

export function Lost(): ReactNode {
  useTitle('Not found');
  return (
    <Alert type="info" header="There is no such page">
      Go to your <To href="/tasks">tasks</To>.
    </Alert>
  );
}
