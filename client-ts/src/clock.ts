/** The time that a client goes by. */
import { setTimeout } from 'node:timers/promises';

/** Tests give a client another clock. */
export interface Clock {
  /** The time in epoch milliseconds. */
  now(): number;
  /** Milliseconds that no change of the clock affects. */
  monotonic(): number;
  /** Wait. Throws the reason of the signal if that aborts. */
  sleep(milliseconds: number, signal?: AbortSignal): Promise<void>;
}

const LONGEST_TIMER = 2 ** 31 - 1; // milliseconds: a longer timer of Node fires at once

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  async sleep(milliseconds, signal) {
    signal?.throwIfAborted();
    await setTimeout(Math.min(milliseconds, LONGEST_TIMER), undefined, signal && { signal }).catch((error: unknown) => {
      throw signal?.aborted ? signal.reason : error;
    });
  },
};
