/** What a job that waits for its end in AWS started there: an ECS task with its containers, or an execution of a state machine. Pure. */
import type { Job } from './api/client';
import { read } from './exact';

export type Awaiting = Omit<Job, 'awaited'> & { awaited?: Partial<NonNullable<Job['awaited']>> | null };

export interface Container {
  name: string;
  exitCode: number | null;
  reason: string | null;
  /** The address of its log stream in the console of AWS. */
  log: string | null;
}

export interface Started {
  service: 'ecs' | 'stepfunctions';
  arn: string;
  /** Its page in the console of AWS. */
  page: string | null;
  status: string | null;
  stopCode: string | null;
  stoppedReason: string | null;
  startedAt: string | null;
  stoppedAt: string | null;
  /** Why it is being stopped; null: it is not. */
  stopping: string | null;
  containers: Container[];
}

type Fields = Record<string, unknown>;

const OF_CONSOLE = /^https:\/\/([a-z0-9-]+\.)?console\.(aws\.amazon\.com|amazonaws\.cn|amazonaws-us-gov\.com)\//;

/** By what the job reported, or what it awaits; null: another job, or nothing is known yet. */
export function startedBy(job: Pick<Awaiting, 'type' | 'output' | 'attempts' | 'awaited'>): Started | null {
  if (job.type !== 'ecs' && job.type !== 'stepfunctions') return null;
  const reported = recordOf(job.output ?? job.attempts.at(-1)?.output);
  const told = arnOf(reported['task']) ?? arnOf(reported['execution']); // any other output is that of the state machine
  const arn = arnOf(job.awaited?.id) ?? told;
  if (arn === null) return null;
  const known = arn === told ? reported : {};
  return {
    service: job.type,
    arn,
    page: linkOf(job.awaited?.url) ?? linkOf(known['url']),
    status: textOf(known['status']),
    stopCode: textOf(known['stop_code']),
    stoppedReason: textOf(known['stopped_reason']),
    startedAt: textOf(known['started_at']),
    stoppedAt: textOf(known['stopped_at']),
    stopping: textOf(job.awaited?.stopping),
    containers: Array.isArray(known['containers']) ? known['containers'].map(containerOf) : runningOf(job.awaited?.logs),
  };
}

/** The containers that run, as far as they have logs. */
function runningOf(logs: Record<string, string> | undefined): Container[] {
  return Object.entries(logs ?? {}).map(([name, log]) => ({ name, exitCode: null, reason: null, log: linkOf(log) }));
}

function containerOf(value: unknown): Container {
  const { name, exit_code: code, reason, log } = fieldsOf(value);
  return { name: textOf(name) ?? 'Container', exitCode: typeof code === 'number' ? code : null, reason: textOf(reason), log: linkOf(log) };
}

function recordOf(text: string | null | undefined): Fields {
  try {
    return fieldsOf(read(text ?? ''));
  } catch {
    return {}; // of another version, or cut
  }
}

function fieldsOf(value: unknown): Fields {
  return value !== null && typeof value === 'object' ? (value as Fields) : {};
}

function textOf(value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? value : null;
}

function arnOf(value: unknown): string | null {
  const text = textOf(value);
  return text?.startsWith('arn:') === true ? text : null;
}

/** Only pages of AWS: a worker may have reported the output. */
function linkOf(value: unknown): string | null {
  const text = textOf(value);
  return text !== null && OF_CONSOLE.test(text) ? text : null;
}

/** Why ECS stopped a task, by the codes of its API. */
const STOPS: Record<string, string> = {
  TaskFailedToStart: 'It could not start',
  EssentialContainerExited: 'A container ended',
  UserInitiated: 'It was stopped',
  ServiceSchedulerInitiated: 'ECS stopped it',
  SpotInterruption: 'AWS took its Spot capacity back',
  TerminationNotice: 'AWS ended the machine',
};

export function stopInWords(code: string): string {
  return STOPS[code] ?? code;
}

const SIGNALS: Record<number, string> = { 2: 'interrupted', 6: 'aborted', 9: 'killed, as by a lack of memory', 11: 'a wrong memory access', 15: 'requested to end' };

/** An exit code in words; beyond 128 it names a signal. */
export function exitInWords(code: number): string {
  const signal = code > 128 ? SIGNALS[code - 128] : undefined;
  return `Exit code ${code}${code === 0 ? ', success' : signal === undefined ? '' : `, ${signal}`}`;
}
