import { afterAll, expect, test } from 'vitest';
import { closeRound } from '../../backend.mjs';
import { namespace } from '../extcli.mjs';

const extcli = namespace();
afterAll(() => extcli.drop());

test('a tie has no winner', async () => {
  await extcli.viewer('U1').vote('boss', 0);
  await extcli.viewer('U2').vote('boss', 2);

  const { Authorization } = await extcli.backend.headers();
  expect(await closeRound(extcli.url, Authorization)).toBe(null);
});
