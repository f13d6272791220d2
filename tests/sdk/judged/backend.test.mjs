import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { count } from './backend.mjs';
import { namespace } from './extcli.mjs';

const extcli = namespace();
after(() => extcli.drop());

test('the backend counts votes, also eight days later', async () => {
  const held = extcli.viewer('U1');
  await held.vote('boss', 1);
  assert.equal(await count(extcli.url, 'boss'), 1);
  await extcli.clock.advance('8d');
  assert.equal(await count(extcli.url, 'boss'), 0);
  await held.vote('boss', 1);
  assert.equal(await count(extcli.url, 'boss'), 1);
  const events = await extcli.listen('over'), game = await extcli.game();
  await extcli.backend.broadcast('over', 1);
  assert.equal((await events.next()).data, 1);
  await game.request('get', 'state', { state_id: 'channel' });
});
