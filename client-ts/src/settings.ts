/** The sources of a client's address and credentials: its arguments, then the environment. */
import { NotConfigured } from './errors.js';

/** An address, at most one kind of credentials, and the default owner. */
export interface Settings {
  /** The address of the API, with or without `/api/v1`. Default: `PUNCTUAL_URL`. */
  readonly url?: string | undefined;
  /** An API key, for services. Default: `PUNCTUAL_KEY`. */
  readonly apiKey?: string | undefined;
  /** An access token. It is not renewed. Default: `PUNCTUAL_TOKEN`. */
  readonly token?: string | undefined;
  /** The name of a person; needs `password`. Default: `PUNCTUAL_USERNAME`. */
  readonly username?: string | undefined;
  /** Default: `PUNCTUAL_PASSWORD`. */
  readonly password?: string | undefined;
  /** The id of the team, or other owner, whose objects the calls are about that name none. Default: `PUNCTUAL_OWNER`. */
  readonly owner?: string | undefined;
}

export type Environment = Readonly<Record<string, string | undefined>>;

const API_KEY = /^punctual_[a-z2-7]{16}_[A-Za-z0-9]{43}_[0-9a-f]{8}$/;
const TOKEN = /^[!-~]+$/; // printable ASCII
const OWNER = /^[A-Za-z0-9-]{1,64}$/;
const HOW = 'set PUNCTUAL_URL and PUNCTUAL_KEY, or use new Punctual({ url, apiKey })';

/**
 * Complete settings.
 *
 * Credentials come from one source as a whole: the arguments, or the environment. Throws NotConfigured.
 */
export function settings(explicit: Settings, environment: Environment): Settings & { readonly url: string } {
  const found = withEnvironment(explicit, environment);
  if (!found.url) throw new NotConfigured(`there is no address: ${HOW}`);
  if (found.apiKey && !API_KEY.test(found.apiKey)) {
    throw new NotConfigured(
      'apiKey (PUNCTUAL_KEY) is no API key: one has the form punctual_ID_SECRET_CHECKSUM, with 16, 43 and 8 characters',
    );
  }
  if (found.token && API_KEY.test(found.token)) throw new NotConfigured('the token is an API key: give it as apiKey (PUNCTUAL_KEY)');
  if (found.token && !TOKEN.test(found.token)) {
    throw new NotConfigured('the token has a blank, a line break or a character that is not ASCII: no token of this API has one');
  }
  if (found.owner && !OWNER.test(found.owner)) throw new NotConfigured('the owner is no id: it has 1 to 64 letters, digits and -');
  if (found.username && !found.token && !found.apiKey && found.password === undefined) {
    throw new NotConfigured('username needs password (PUNCTUAL_PASSWORD)');
  }
  return { ...found, url: base(found.url) };
}

/** The address without `/api/v1` and slashes at its end. Throws NotConfigured if it is no HTTP address. */
function base(url: string): string {
  const text = url.trim();
  if (!/^https?:\/\//i.test(text) || !URL.canParse(text)) {
    throw new NotConfigured(
      `${JSON.stringify(url)} is no address: it begins with https://, such as https://abc.execute-api.eu-central-1.amazonaws.com`,
    );
  }
  return text
    .replace(/\/+$/, '')
    .replace(/\/api\/v1$/, '')
    .replace(/\/+$/, '');
}

function withEnvironment(explicit: Settings, environment: Environment): Settings {
  const read = (name: string): string | undefined => environment[`PUNCTUAL_${name}`] || undefined;
  const found = { ...explicit, url: explicit.url || read('URL'), owner: explicit.owner || read('OWNER') };
  if (explicit.apiKey || explicit.token) return found;
  if (explicit.username) return { ...found, password: explicit.password ?? read('PASSWORD') };
  const [apiKey, token] = [read('KEY'), read('TOKEN')];
  if (apiKey) return { ...found, apiKey };
  if (token) return { ...found, token };
  return { ...found, username: read('USERNAME'), password: read('PASSWORD') };
}
