/**
 * An identity provider for `tests/system/test_sso.py`: node server.mjs PORT CALLBACK SIGN_OUT
 *
 * It signs in without a password the person that the last `POST /person` named, with these claims. Its own session is in a cookie:
 * until that is over, it signs in the same person again.
 */
import { createServer } from 'node:http';

import Provider from 'oidc-provider';

const [port, callback, afterSignOut] = process.argv.slice(2);
const issuer = `http://127.0.0.1:${port}`;
const people = new Map();
let present = '';

const provider = new Provider(issuer, {
  clients: [
    {
      client_id: 'punctual',
      client_secret: 'a-secret-of-the-tests',
      redirect_uris: [callback],
      post_logout_redirect_uris: [afterSignOut],
      token_endpoint_auth_method: 'client_secret_post',
    },
  ],
  claims: { openid: ['sub'], profile: ['name'], email: ['email', 'email_verified'], groups: ['groups'] },
  scopes: ['openid', 'profile', 'email', 'groups'],
  conformIdTokenClaims: false, // Cognito reads the ID token
  pkce: { required: () => false },
  cookies: { keys: ['of the tests'] },
  features: {
    devInteractions: { enabled: false },
    rpInitiatedLogout: { logoutSource: (ctx, form) => { ctx.body = `<!doctype html>${form}<button form="op.logoutForm" name="logout" value="yes">Sign out</button>`; } },
  },
  interactions: { url: (_, interaction) => `/interaction/${interaction.uid}` },
  findAccount: (_, accountId) => ({ accountId, claims: () => ({ sub: accountId, ...people.get(accountId) }) }),
  async loadExistingGrant(ctx) {
    const grant = new ctx.oidc.provider.Grant({ clientId: ctx.oidc.client.clientId, accountId: ctx.oidc.session.accountId });
    grant.addOIDCScope('openid profile email groups');
    await grant.save();
    return grant;
  },
});
const answer = provider.callback();

async function bodyOf(request) {
  const parts = [];
  for await (const part of request) parts.push(part);
  return JSON.parse(Buffer.concat(parts).toString());
}

const server = createServer(async (request, response) => {
  if (request.url === '/person' && request.method === 'POST') {
    const { sub, ...claims } = await bodyOf(request);
    people.set(sub, claims);
    present = sub;
    response.writeHead(204).end();
  } else if (request.url.startsWith('/interaction/')) {
    await provider.interactionFinished(request, response, { login: { accountId: present } });
  } else {
    await answer(request, response);
  }
});
server.listen(Number(port), '127.0.0.1', () => console.log('listening'));
