/** The colours of charts and of the words of a status, each with one meaning on all pages; `styles.css` has those of charts for light and dark. Pure. */
import type { StatusIndicatorProps } from '@cloudscape-design/components/status-indicator';

import type { Job } from './api/client';

export const COLOURS = {
  succeeded: 'var(--succeeded)',
  failed: 'var(--failed)',
  killed: 'var(--killed)',
  skipped: 'var(--skipped)',
  cancelled: 'var(--cancelled)',
  measure: 'var(--measure)',
  /** A second measure, such as a 95th percentile. */
  high: 'var(--measure-high)',
} as const;

/** An icon and a colour of Cloudscape. */
export type Look = Pick<StatusIndicatorProps, 'type' | 'colorOverride'>;

/** Blue: at work, or about to start. */
export const GOES_ON: Look = { type: 'in-progress', colorOverride: 'blue' };

/** Green and red are ends. Yellow did not start at its time. Grey is not due, or somebody stopped it. */
export const JOB_LOOKS: Record<Job['status'], Look> = {
  scheduled: { type: 'pending' },
  queued: { type: 'pending', colorOverride: 'blue' },
  running: GOES_ON,
  succeeded: { type: 'success' },
  failed: { type: 'error' },
  killed: { type: 'error' },
  cancelled: { type: 'stopped' },
  skipped: { type: 'stopped', colorOverride: 'yellow' },
};

/** Of a job that waits although its time has passed: a warning. */
export function lookOfJob({ status, late }: Pick<Job, 'status' | 'late'>): Look {
  return status === 'queued' && late ? { type: 'warning' } : JOB_LOOKS[status];
}
