import assert from 'node:assert/strict';
import { test } from 'node:test';
import { closeRound } from '../../backend.mjs';
import { namespace } from '../extcli.mjs';

const extcli = namespace();

test('a tie has no winner', async () => {
  await extcli.viewer('U1').vote('boss', 0);
  await extcli.viewer('U2').vote('boss', 2);

  const { Authorization } = await extcli.backend.headers();
  assert.equal(await closeRound(extcli.url, Authorization), null);
});
