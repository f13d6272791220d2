// What the broadcaster sees: starts and stops the poll, speaks to viewers, and links a game.
import { attempt, connect } from './extension.js';
import { PollView } from './poll.js';

const newPoll = document.querySelector('#new-poll');
const stop = document.querySelector('#stop');
const announcement = document.querySelector('#announcement');
const enterPin = document.querySelector('#enter-pin');
const showPin = document.querySelector('#show-pin');
const done = document.querySelector('#done');

function say(text) {
  done.textContent = text;
  done.hidden = false;
}

// Does what a button asks for; what was said of an earlier one is no longer of interest.
function perform(act) {
  done.hidden = true;
  return attempt(act);
}

function onClick(button, act) {
  button.addEventListener('click', () => perform(act));
}

// Calls `act` with the form's fields when it is sent.
function onSubmit(form, act) {
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    perform(() => act(Object.fromEntries(new FormData(form))));
  });
}

async function start() {
  const sdk = await connect('broadcaster');
  const view = new PollView(document.querySelector('#poll'), sdk, { canVote: false });

  function show(poll) {
    view.show(poll);
    stop.hidden = !poll?.open;
  }

  // Who is here now hears of it; who comes later reads it from the channel's state.
  async function publish(poll) {
    await sdk.setChannelState({ poll });
    sdk.send('poll', poll);
    show(poll);
  }

  onSubmit(newPoll, async ({ question, options }) => {
    const texts = options.split('\n').map((each) => each.trim());
    // Each poll has an id of its own, so it begins without votes.
    await publish({ id: `poll-${Date.now()}`, question, options: texts.filter(Boolean), open: true });
  });

  onClick(stop, () => publish({ ...view.poll, open: false }));

  onSubmit(announcement, ({ text }) => {
    sdk.send('announcement', { text });
    announcement.reset();
    say('Sent to all viewers.');
  });

  onSubmit(enterPin, async ({ pin }) => {
    await sdk.validateCode(pin.toUpperCase());
    enterPin.reset();
    say('The game is linked to your channel.');
  });

  onClick(showPin, async () => {
    const { token } = await sdk.signedRequest('POST', 'gamelink/token', {});
    document.querySelector('#pin').textContent = token;
    say('Type the PIN into the game within five minutes.');
  });

  const { poll } = await sdk.getChannelState();
  show(poll);
  view.keepCounting();
}

attempt(start);
