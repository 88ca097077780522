/** The client of Punctual, a serverless job scheduler for AWS. `Punctual` is the client. */
export type { BatchJob, Duration, Http, Instant, JobChange, JobFields, Reference, ScheduleFields, TaskFields } from './bodies.js';
export { Punctual, type PunctualOptions } from './client.js';
export type { Clock } from './clock.js';
export {
  ApiError,
  Conflict,
  type FieldError,
  InvalidArgument,
  InvalidRequest,
  InvalidSignature,
  NoAnswer,
  NotAllowed,
  NotAuthenticated,
  NotConfigured,
  NotFound,
  PunctualError,
  QuotaExceeded,
  Throttled,
  Unavailable,
  UnexpectedAnswer,
  WaitTimeout,
} from './errors.js';
export type { BatchResult, CreatedJob, Job, JobFilter, OwnedOptions } from './jobs.js';
export type { components, operations, paths } from './schema.js';
export { type ReceivedHeaders, type VerifyOptions, verifySignature } from './signature.js';
export type { ListedTask, PutTask, RunOptions, Task, TaskFilter } from './tasks.js';
export type { CallOptions, WaitOptions } from './transport.js';
