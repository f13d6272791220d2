import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { closeRound } from '../backend.mjs';
import { namespace } from './extcli.mjs';

const extcli = namespace(); // a service of its own, for this file
Object.assign(process.env, extcli.env); // where the backend finds it

beforeEach(async () => {
  await extcli.reset();
  const round = { question: 'Which boss is next?', options: ['Dragon', 'Golem', 'Hydra'], open: true };
  await extcli.broadcaster.setStore('channel_state', { round });
});

test('the option with the most votes wins', async () => {
  await extcli.viewer('U1').vote('boss', 1);
  await extcli.viewer('U2').vote('boss', 1);
  await extcli.viewer('U3').vote('boss', 0);

  assert.equal((await closeRound()).winner, 'Golem');
});

test('a tie has no winner', async () => {
  await extcli.viewer('U1').vote('boss', 0);
  await extcli.viewer('U2').vote('boss', 2);

  assert.equal((await closeRound()).winner, null);
});

test('a viewer who joins later reads the winner in the channel state', async () => {
  await extcli.viewer('U1').vote('boss', 2);
  await closeRound();

  const { round } = await extcli.viewer('U9').store('channel_state');
  assert.deepEqual([round.open, round.winner], [false, 'Hydra']);
});

test('the backend closes a round of twenty hours ago', async () => {
  await extcli.viewer('U1').vote('boss', 0);
  await extcli.clock.advance('20h'); // every token has expired; the backend signs a new one

  assert.equal((await closeRound()).winner, 'Dragon');
});
