import { afterAll, expect, test } from 'vitest';
import { closeRound } from '../../backend.mjs';
import { namespace } from '../extcli.mjs';

const extcli = namespace();
afterAll(() => extcli.drop());

test('the option with the most votes wins', async () => {
  await extcli.viewer('U1').vote('boss', 1);
  await extcli.viewer('U2').vote('boss', 1);
  await extcli.viewer('U3').vote('boss', 0);

  const { Authorization } = await extcli.backend.headers();
  expect(await closeRound(extcli.url, Authorization)).toBe('Golem');
});
