/** The names of the API's fields as the forms show them. Pure. */

/** Names of fields that do not read well by themselves, or that have another one here. */
const LABELS: Record<string, string> = {
  type: 'Type or named target',
  target: 'Type or named target',
  execute_at: 'When',
  delay_seconds: 'When',
  delay: 'When',
  schedule: 'When',
  'schedule.at': 'Time',
  'schedule.cron': 'Cron',
  'schedule.every': 'Every',
  'schedule.times': 'Times',
  'schedule.weekdays': 'Weekdays',
  'schedule.rate': 'Every',
  'schedule.time_zone': 'Time zone',
  'schedule.start': 'No run before',
  'schedule.end': 'No run at or after',
  'schedule.max_runs': 'Max runs',
  'schedule.jitter_seconds': 'Jitter (s)',
  'schedule.exclude': 'No run on',
  'schedule.only': 'Runs only on',
  'schedule.working_days': 'Working days',
  'schedule.on_excluded': 'Runs on excluded days',
  'schedule.dst_gap': 'Local time skipped by the clock',
  'schedule.dst_overlap': 'Local time that occurs twice',
  timeout_seconds: 'Attempt time-out (s)',
  overlap: 'If the previous run has not ended',
  misfire: 'Missed runs',
  misfire_threshold_seconds: 'Missed after (s)',
  max_catch_up: 'Max catch-up runs',
  'retry.base_seconds': 'First wait (s)',
  'retry.cap_seconds': 'Longest wait (s)',
  'retry.jitter': 'Jitter',
  'retry.max_elapsed_seconds': 'Stop retrying after (s)',
  'retry.on_timeout': 'Retry after a time-out',
  on_failure: 'If a job fails',
  limit: 'Limit of a key',
  'limit.key': 'Limit key',
  'limit.concurrency': 'Max jobs at once',
  'limit.rate': 'Max starts in a period',
  'limit.period': 'Period',
  callback: 'Call-back',
  'callback.lease_seconds': 'Heartbeat time-out (s)',
  'callback.max_seconds': 'Maximum duration (s)',
  'notifications.emails': 'E-mail addresses',
  'notifications.webhooks': 'Webhooks',
  'notifications.receivers': 'Named receivers',
  'notifications.on': 'Notify on',
  'notifications.after_failures': 'Notify after this many failures in a row',
  'notifications.digest_seconds': 'Notify at most every (s)',
  alerts: 'Alerts',
  'alerts.late_after_seconds': 'Late after (s)',
  'alerts.max_duration_seconds': 'Too long after (s)',
  'alerts.done_by': 'Done by',
  'alerts.missed': 'Alert on missed runs',
  kind: 'Type',
  locked: 'Locked defaults',
  payload_schema: 'JSON Schema of the payload',
  rate: 'Max starts per second',
  concurrency: 'Max concurrent jobs',
};

/** Names of payload fields that do not read well by themselves. */
const PAYLOAD: Record<string, string> = {
  url: 'URL',
  timeout_seconds: 'Call time-out (s)',
  basic_user: 'User name for basic authentication',
  basic_secret: 'Secret for basic authentication',
  bearer_secret: 'Secret for the bearer token',
  topic: 'Topic (ARN)',
};

function inWords(name: string): string {
  return name.charAt(0).toUpperCase() + name.slice(1).replaceAll('_', ' ');
}

export function labelOfPayload(name: string): string {
  return PAYLOAD[name] ?? inWords(name);
}

/** A sentence after the API's description of a payload field, for what differs elsewhere. */
const NOTES: Record<string, string> = {
  method: 'The command line and the Python client send POST if they are given only a URL.',
};

export function descriptionOfPayload(name: string, description: string): string {
  return [description.replaceAll('`', ''), NOTES[name] ?? ''].filter((sentence) => sentence !== '').join(' ');
}

/** The label at which the form shows what is wrong; a part of a field that this console does not know by its path. */
export function labelOf(field: string): string {
  const known = LABELS[field];
  if (known !== undefined) return known;
  const [first = '', second = '', ...rest] = field.split('.');
  if ((first === 'payload' || first === 'defaults') && second !== '') return [labelOfPayload(second), ...rest].join('.');
  if (first === 'notifications' && /^\d+$/.test(rest[0] ?? '')) {
    const number = Number(rest[0]) + 1;
    if (second === 'emails') return `E-mail address ${number}`;
    if (second === 'receivers') return `Named receiver ${number}`;
    if (second === 'webhooks') return rest[1] === 'signing_secret' ? `Signing secret of webhook ${number}` : rest[1] === 'format' ? `Format of webhook ${number}` : `Webhook ${number}`;
  }
  return second === '' ? inWords(field) : field;
}
