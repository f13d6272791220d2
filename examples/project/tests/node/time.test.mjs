import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { closeRound } from '../../backend.mjs';
import { namespace } from '../extcli.mjs';

const extcli = namespace();
beforeEach(() => extcli.reset());

test('votes of last week do not count', async () => {
  await extcli.viewer('U1').vote('boss', 0);
  await extcli.advance('7d1h');
  await extcli.viewer('U2').vote('boss', 1);

  const { Authorization } = await extcli.backend.headers();
  assert.equal(await closeRound(extcli.url, Authorization), 'Golem');
});

test('each test begins without votes', async () => {
  const { Authorization } = await extcli.backend.headers();
  assert.equal(await closeRound(extcli.url, Authorization), null);
});
