/** What a job and a task have in common, as their pages show it beside the type, the payload, the attempts and the receivers. */
import type { ReactNode } from 'react';

import type { Job, Task } from '../api/client';
import { labelOf } from '../form/labels';
import { span } from '../words';
import { Words } from './parts';

export function details(work: Job | Task): { label: string; value: ReactNode }[] {
  const text = (value: string | null): ReactNode => <Words>{value || '–'}</Words>;
  return [
    { label: 'Attempt time-out', value: span(work.timeout_seconds * 1_000) },
    { label: labelOf('key'), value: text(work.key) },
    { label: labelOf('ordering_key'), value: text(work.ordering_key) },
    { label: labelOf('events'), value: work.events ? 'Published when it ends' : '–' },
    { label: labelOf('tags'), value: text(work.tags.join(', ')) },
  ];
}
