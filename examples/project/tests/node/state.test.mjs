import { test } from 'node:test';
import { closeRound } from '../../backend.mjs';
import { namespace } from '../extcli.mjs';

const extcli = namespace();

test('a page that opens later reads the winner', async () => {
  await extcli.viewer().vote('boss', 2);

  const { Authorization } = await extcli.backend.headers();
  await closeRound(extcli.url, Authorization);

  await extcli.wait('store', 'channel_state', { path: '/winner', equals: '"Hydra"', timeout: 0 });
});
