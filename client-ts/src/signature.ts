/** Checks the signature of a request that a job or a notification sent (Standard Webhooks, https://www.standardwebhooks.com). */
import { createHmac, timingSafeEqual } from 'node:crypto';

import { InvalidSignature } from './errors.js';

const TOLERANCE_SECONDS = 300;
const LEAST_KEY = 24; // bytes, as the standard specifies; Punctual signs with no shorter key

/** The headers of a request: those of Node, of Express, or a `Headers` of `fetch`. Names are in any case. */
export type ReceivedHeaders = Headers | Readonly<Record<string, string | readonly string[] | undefined>>;

export interface VerifyOptions {
  /** The most seconds between the signature and now. Default: 300. */
  readonly toleranceSeconds?: number;
  /** The time in epoch seconds. */
  readonly now?: number;
}

/**
 * Return if the request was signed with the secret, or one of several, not long ago. Throws InvalidSignature otherwise.
 *
 * `body` is the body of the request as it arrived, before it is parsed. A secret is `whsec_` and base64, or any other text, of at
 * least 24 bytes. An empty or shorter one is refused: anybody could have signed with it. Give several secrets while you change from
 * one to another. Answer an invalid request with 401 and do nothing else.
 *
 * The signature does not protect against a repeated request: remember the header `webhook-id`.
 */
export function verifySignature(
  body: string | Uint8Array,
  headers: ReceivedHeaders,
  secret: string | readonly string[],
  { toleranceSeconds = TOLERANCE_SECONDS, now = Date.now() / 1000 }: VerifyOptions = {},
): void {
  const keys = (Array.isArray(secret) ? (secret as readonly string[]) : [secret as string]).map(key);
  if (keys.length === 0) throw new InvalidSignature('there is no secret');
  const [id, stamp, signatures] = ['webhook-id', 'webhook-timestamp', 'webhook-signature'].map((name) => header(headers, name)) as [
    string,
    string,
    string,
  ];
  if (!/^\d{1,15}$/.test(stamp)) throw new InvalidSignature('the header webhook-timestamp is no number of seconds');
  const age = now - Number(stamp);
  if (!(Math.abs(age) <= toleranceSeconds)) {
    const seconds = Math.abs(age).toFixed(0);
    throw new InvalidSignature(`the signature is ${seconds} s ${age > 0 ? 'old' : 'ahead'}; ${toleranceSeconds} s are allowed`);
  }
  const sent = signatures.split(' ').map((one) => Buffer.from(one));
  const isSigned = keys.some((each) => {
    const mac = createHmac('sha256', each).update(`${id}.${stamp}.`).update(body);
    const expected = Buffer.from(`v1,${mac.digest('base64')}`);
    return sent.some((one) => one.length === expected.length && timingSafeEqual(one, expected));
  });
  if (!isSigned) throw new InvalidSignature('the signature does not match: another secret, or a changed body');
}

function header(headers: ReceivedHeaders, name: string): string {
  const found =
    headers instanceof Headers ? headers.get(name) : Object.entries(headers).find(([each]) => each.toLowerCase() === name)?.[1];
  if (found === null || found === undefined || found.length === 0) {
    throw new InvalidSignature(`the request is not signed: it has no header ${name}`);
  }
  return String(found);
}

/** The key of a secret. Throws InvalidSignature for a secret that the server never signs with. */
function key(secret: unknown): Buffer {
  if (typeof secret !== 'string') throw new InvalidSignature('the secret is no text: is its environment variable set?');
  const found = secret.startsWith('whsec_') ? decoded(secret.slice('whsec_'.length)) : Buffer.from(secret);
  if (found.length === 0) throw new InvalidSignature('the secret is empty: is its environment variable set?');
  if (found.length < LEAST_KEY) {
    throw new InvalidSignature(`the secret has ${found.length} bytes; a signing secret has at least ${LEAST_KEY}`);
  }
  return found;
}

/** The bytes of base64. Node ignores characters that are none. */
function decoded(text: string): Buffer {
  const found = Buffer.from(text, 'base64');
  if (text.length % 4 !== 0 || !/^[A-Za-z0-9+/]*={0,2}$/.test(text)) {
    throw new InvalidSignature('the secret begins with whsec_, but no base64 follows');
  }
  return found;
}
