// An identity provider for tests, of the certified package oidc-provider.
//
//   node provider.mjs CERTIFICATE KEY
//
// listens on a free port of 127.0.0.1, prints its issuer's URL on a line of its own, and
// ends when its standard input does. Its login form takes any password.
import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:https';

import { Provider } from 'oidc-provider';

// Who may log in, and the groups that their tokens name.
const groups = {
  jane: ['team.devs.platform-access'],
  joe: ['team.guests'],
  ann: ['team-a'],
  bob: ['team-b'],
  pat: ['platform-admins'],
};

const [certificate, key] = process.argv.slice(2).map((path) => readFileSync(path));
const server = createServer({ cert: certificate, key }).listen(0, '127.0.0.1');
await once(server, 'listening');
const issuer = `https://127.0.0.1:${server.address().port}`;

// Programs on people's machines, which can keep no secret. Their users are sent back to
// any port of the loopback address (RFC 8252), or type a code into another device.
const client = (id) => ({
  client_id: id,
  client_name: id,
  application_type: 'native',
  token_endpoint_auth_method: 'none',
  grant_types: ['authorization_code', 'refresh_token', 'urn:ietf:params:oauth:grant-type:device_code'],
  redirect_uris: ['http://127.0.0.1/callback', 'http://localhost/callback'],
});

// croft dashboard, whose users' browsers return to a server that keeps a secret.
const dashboardURL = process.env.DASHBOARD_URL ?? 'https://dashboard.example.org';
const dashboard = {
  client_id: 'dashboard',
  client_name: 'dashboard',
  client_secret: 'a secret: 100%',
  grant_types: ['authorization_code', 'refresh_token'],
  redirect_uris: [`${dashboardURL}/login/callback`],
  post_logout_redirect_uris: [`${dashboardURL}/login`],
};

const signing = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({ format: 'jwk' });

const provider = new Provider(issuer, {
  // The second is one whose tokens are not meant for the cluster. The tokens of the third
  // and of the dashboard end so soon that each use needs a new one.
  clients: [client('croft'), client('another'), client('brief'), dashboard],
  ttl: { IdToken: (_, __, { clientId }) => (['brief', 'dashboard'].includes(clientId) ? 30 : 3600) },
  jwks: { keys: [{ ...signing, use: 'sig', alg: 'RS256' }] },
  cookies: { keys: ['only signed so that the library does not warn'] },
  scopes: ['openid', 'offline_access'],
  claims: { openid: ['sub'], profile: ['preferred_username'], groups: ['groups'] },
  // Kubernetes reads ID tokens, and asks nobody for what is not in them.
  conformIdTokenClaims: false,
  features: { devInteractions: { enabled: true }, deviceFlow: { enabled: true }, revocation: { enabled: true } },
  findAccount: (_, id) => groups[id] && {
    accountId: id,
    claims: () => ({ sub: id, preferred_username: id, groups: groups[id] }),
  },
});
provider.on('server_error', (_, err) => console.error(err));

server.on('request', provider.callback());
console.log(issuer);
process.stdin.resume().on('end', () => process.exit());
