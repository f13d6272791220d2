import assert from 'node:assert/strict';
import { test } from 'node:test';
import { closeRound } from '../../backend.mjs';
import { namespace } from '../extcli.mjs';

const extcli = namespace();

test('the option with the most votes wins', async () => {
  await extcli.viewer('U1').vote('boss', 1);
  await extcli.viewer('U2').vote('boss', 1);
  await extcli.viewer('U3').vote('boss', 0);

  const { Authorization } = await extcli.backend.headers();
  assert.equal(await closeRound(extcli.url, Authorization), 'Golem');
});
