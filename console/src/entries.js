import { pageOfTarget } from './form/target';
import { ofOwner, pageOfJob, pageOfTask } from './parts/links';
const DONE = {
    'job.change': 'Changed a job',
    'job.cancel': 'Cancelled a job',
    'job.retry': 'Ran a job again',
    'ordering-key.resume': 'Resumed an ordering key',
    'redrive.start': 'Ran failed jobs again',
    'redrive.abort': 'Aborted new runs of failed jobs',
    'intake.retry': 'Tried a refused message again',
    'intake.delete': 'Deleted a refused message',
    'operation.cancel_jobs': 'Cancelled many jobs',
    'operation.pause_tasks': 'Paused many tasks',
    'operation.resume_tasks': 'Resumed many tasks',
    'operation.delete_tasks': 'Deleted many tasks',
    'operation.abort': 'Aborted an operation',
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
};
export const ACTIONS = ['task', 'job', 'redrive', 'intake', 'operation', 'ordering-key', 'target', 'user', 'system'];
/** What was asked for; an action that is new to this console as it is named. */
export function actionInWords({ action, changes }) {
    if (action.startsWith('operation.') && changes['dry_run'] === true)
        return 'Previewed an operation';
    return DONE[action] ?? action;
}
/** The page of what was changed, for the viewer with the id `own`; null if it has none, or is gone. */
export function pageOf({ action, object, owner }, own) {
    if (object === null)
        return null;
    const [kind, verb] = action.split('.');
    const other = owner === own ? undefined : owner;
    if (verb === 'delete')
        return null;
    if (kind === 'task')
        return pageOfTask(object, other);
    if (kind === 'job')
        return pageOfJob(object, other);
    if (kind === 'target')
        return pageOfTarget(object);
    if (kind === 'redrive')
        return pageOfOperation('/dead-letters', object, other);
    if (kind === 'operation')
        return pageOfOperation('/operations', object, other);
    return null;
}
function pageOfOperation(list, id, owner) {
    return `${list}${ofOwner(owner) || '?'}${owner === undefined ? '' : '&'}operation=${id}`;
}
/** How it ended. */
export function outcomeOf(status) {
    if (status === null)
        return { look: 'pending', word: 'Unknown' };
    return status < 300 ? { look: 'success', word: 'Done' } : { look: 'error', word: `Refused (${status})` };
}
const NAMED = 3;
/** The first of the fields that were asked for, in a line. */
export function fieldsAsked(changes) {
    const names = Object.keys(changes);
    const more = names.length - NAMED;
    return more > 0 ? `${names.slice(0, NAMED).join(', ')} + ${more}` : names.join(', ') || '–';
}
