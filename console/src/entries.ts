/** Entries of the audit trail in words. Pure. */
import type { Schemas } from './api/client';
import { pageOfTarget } from './form/target';
import { ofOwner, pageOfGroup, pageOfJob, pageOfTask, pageOfTeam } from './parts/links';

export type Entry = Schemas['AuditEntry'];

const DONE: Record<string, string> = {
  'job.change': 'Changed a job',
  'job.cancel': 'Cancelled a job',
  'job.retry': 'Ran a job again',
  'job.replay': 'Replayed a job',
  'ordering-key.resume': 'Resumed an ordering key',
  'redrive.start': 'Ran failed jobs again',
  'redrive.abort': 'Aborted new runs of failed jobs',
  'intake.retry': 'Tried a refused message again',
  'intake.delete': 'Deleted a refused message',
  'operation.cancel_jobs': 'Cancelled many jobs',
  'operation.replay_jobs': 'Replayed many jobs',
  'operation.pause_tasks': 'Paused many tasks',
  'operation.resume_tasks': 'Resumed many tasks',
  'operation.delete_tasks': 'Deleted many tasks',
  'operation.abort': 'Aborted an operation',
  'group.seal': 'Sealed a group',
  'group.cancel': 'Cancelled a group',
  'calendar.put': 'Stored a calendar',
  'calendar.delete': 'Deleted a calendar',
  'task.create': 'Created a task',
  'task.edit': 'Edited a task',
  'task.put': 'Put a task by its key',
  'task.delete': 'Deleted a task',
  'task.pause': 'Paused a task',
  'task.resume': 'Resumed a task',
  'task.run': 'Ran a task',
  'target.create': 'Registered a target',
  'target.change': 'Changed a target',
  'target.delete': 'Deleted a target',
  'system.pause': 'Paused queues',
  'system.resume': 'Resumed queues',
  'system.close-breaker': 'Closed a breaker',
  'user.create': 'Created a user',
  'user.change': 'Changed a user',
  'user.disable': 'Disabled a user',
  'user.enable': 'Enabled a user',
  'user.delete': 'Deleted a user',
  'user.sign-out': 'Ended the sessions of a user',
  'user.password': 'Changed a password',
  'user.totp-begin': 'Began a second factor',
  'user.totp-on': 'Switched a second factor on',
  'user.totp-off': 'Switched a second factor off',
  'user.totp-reset': 'Reset the second factor of a user',
  'user.link': 'Linked an identity to a user',
  'user.unlink': 'Took an identity away from a user',
  'key.create': 'Made an API key',
  'key.revoke': 'Revoked an API key',
  'monitor.put': 'Stored a monitor',
  'monitor.delete': 'Deleted a monitor',
  'monitor.pause': 'Paused a monitor',
  'monitor.resume': 'Resumed a monitor',
  'monitor.token': 'Gave a monitor a new ping URL',
  'receiver.put': 'Stored a receiver of notices',
  'receiver.delete': 'Deleted a receiver of notices',
  'receiver.test': 'Tested a receiver of notices',
  'default_alerts.put': 'Stored the default alerts',
  'team.create': 'Created a team',
  'team.rename': 'Renamed a team',
  'team.delete': 'Deleted a team',
  'team.invite': 'Invited to a team',
  'team.withdraw': 'Withdrew an invitation to a team',
  'team.accept': 'Joined a team',
  'team.member': 'Set the role of a member of a team',
  'team.remove': 'Removed a member of a team',
  'principal.create': 'Let an AWS role act for an owner',
  'principal.change': 'Changed an AWS role',
  'principal.delete': 'Stopped an AWS role from acting',
  'access.refuse': 'Was refused',
};

export const ACTIONS = ['task', 'job', 'redrive', 'intake', 'operation', 'group', 'calendar', 'ordering-key', 'target', 'user', 'key', 'team', 'principal', 'access', 'system'] as const;

/** What was asked for; an action that is new to this console as it is named. */
export function actionInWords({ action, changes }: Pick<Entry, 'action' | 'changes'>): string {
  if (action.startsWith('operation.') && changes['dry_run'] === true) return 'Previewed an operation';
  return DONE[action] ?? action;
}

/** The page of what was changed, for the viewer with the id `own`; null if it has none, or is gone. */
export function pageOf({ action, object, owner }: Pick<Entry, 'action' | 'object' | 'owner'>, own: string): string | null {
  if (object === null) return null;
  const [kind, verb] = action.split('.');
  const other = owner === own ? undefined : owner;
  if (verb === 'delete') return null;
  if (kind === 'task') return pageOfTask(object, other);
  if (kind === 'job') return pageOfJob(object, other);
  if (kind === 'group') return pageOfGroup(object, other);
  if (kind === 'target') return pageOfTarget(object);
  if (kind === 'team') return pageOfTeam(object);
  if (kind === 'redrive') return pageOfOperation('/dead-letters', object, other);
  if (kind === 'operation') return pageOfOperation('/operations', object, other);
  return null;
}

function pageOfOperation(list: string, id: string, owner: string | undefined): string {
  return `${list}${ofOwner(owner) || '?'}${owner === undefined ? '' : '&'}operation=${id}`;
}

/** How it ended. */
export function outcomeOf(status: number | null): { look: 'success' | 'error' | 'pending'; word: string } {
  if (status === null) return { look: 'pending', word: 'Unknown' };
  return status < 300 ? { look: 'success', word: 'Done' } : { look: 'error', word: `Refused (${status})` };
}

const NAMED = 3;

/** The first of the fields that were asked for, in a line. */
export function fieldsAsked(changes: Record<string, unknown>): string {
  const names = Object.keys(changes);
  const more = names.length - NAMED;
  return more > 0 ? `${names.slice(0, NAMED).join(', ')} + ${more}` : names.join(', ') || '–';
}
