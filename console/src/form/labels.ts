/** The names of the API's fields as the forms show them. Pure. */

const LABELS: Record<string, string> = {
  name: 'Name',
  description: 'Description',
  type: 'Type or named target',
  target: 'Type or named target',
  payload: 'Payload',
  tags: 'Tags',
  execute_at: 'When',
  delay_seconds: 'When',
  delay: 'When',
  expires_at: 'Not at or after',
  key: 'Key',
  schedule: 'When',
  'schedule.at': 'Time',
  'schedule.cron': 'Cron',
  'schedule.rate': 'Every',
  'schedule.time_zone': 'Time zone',
  'schedule.start': 'Not before',
  'schedule.end': 'Not at or after',
  'schedule.max_runs': 'Runs at most',
  'schedule.jitter_seconds': 'Jitter, seconds',
  'schedule.dst_gap': 'A time that the clock jumps over',
  'schedule.dst_overlap': 'A time that comes twice',
  max_attempts: 'Attempts at most',
  timeout_seconds: 'Time-out of an attempt, seconds',
  overlap: 'If a run has not ended when the next is due',
  misfire: 'A run that could not start on time',
  misfire_threshold_seconds: 'Late by, seconds',
  max_catch_up: 'Runs at most',
  'retry.base_seconds': 'First wait, seconds',
  'retry.cap_seconds': 'Longest wait, seconds',
  'retry.jitter': 'Random part of the wait',
  'retry.max_elapsed_seconds': 'No attempt later than, seconds',
  'retry.on_timeout': 'Try again after a time-out',
  ordering_key: 'Ordering key',
  on_failure: 'If it fails',
  callback: 'Call-back',
  'callback.lease_seconds': 'Silent at most, seconds',
  'callback.max_seconds': 'All in all at most, seconds',
  events: 'Events',
  notifications: 'Notifications',
  'notifications.emails': 'E-mail addresses',
  'notifications.webhooks': 'Webhooks',
  'notifications.on': 'Told when',
  'notifications.after_failures': 'Failures in a row before they are told',
  'notifications.digest_seconds': 'One notice of each at most every, seconds',
  kind: 'Type',
  locked: 'Defaults that no job may give',
  payload_schema: 'JSON Schema of what jobs give',
  rate: 'Starts a second at most',
  concurrency: 'At once at most',
};

/** Names of payload fields that do not read well by themselves. */
const PAYLOAD: Record<string, string> = {
  url: 'URL',
  timeout_seconds: 'Time-out of the call, seconds',
  basic_user: 'User name for basic authentication',
  basic_secret: 'Secret for basic authentication',
  bearer_secret: 'Secret for the bearer token',
  topic: 'Topic (ARN)',
};

export function labelOfPayload(name: string): string {
  return PAYLOAD[name] ?? name.charAt(0).toUpperCase() + name.slice(1).replaceAll('_', ' ');
}

/** The label at which the form shows what is wrong; a field that this console does not know by its own name. */
export function labelOf(field: string): string {
  const known = LABELS[field];
  if (known !== undefined) return known;
  const [first = '', second = '', ...rest] = field.split('.');
  if ((first === 'payload' || first === 'defaults') && second !== '') return [labelOfPayload(second), ...rest].join('.');
  if (first === 'notifications' && /^\d+$/.test(rest[0] ?? '')) {
    const number = Number(rest[0]) + 1;
    if (second === 'emails') return `E-mail address ${number}`;
    if (second === 'webhooks') return rest[1] === 'signing_secret' ? `Secret of webhook ${number}` : rest[1] === 'format' ? `Format of webhook ${number}` : `Webhook ${number}`;
  }
  return field;
}
