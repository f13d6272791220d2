// The broadcaster's dashboard: starts and stops the poll, sends announcements, and links a game.
import { attempt, connect } from './extension.js';
import { PollView } from './poll.js';

const newPoll = document.querySelector('#new-poll');
const stop = document.querySelector('#stop');
const announcement = document.querySelector('#announcement');
const enterPin = document.querySelector('#enter-pin');
const showPin = document.querySelector('#show-pin');
const done = document.querySelector('#done');

function showMessage(text) {
  done.textContent = text;
  done.hidden = false;
}

// Runs the action of a button, and hides the message of an earlier one.
function perform(action) {
  done.hidden = true;
  return attempt(action);
}

function onClick(button, action) {
  button.addEventListener('click', () => perform(action));
}

// Calls `action` with the fields of a submitted form.
function onSubmit(form, action) {
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    perform(() => action(Object.fromEntries(new FormData(form))));
  });
}

async function start() {
  const sdk = await connect('broadcaster');
  const view = new PollView(document.querySelector('#poll'), sdk, { canVote: false });

  function show(poll) {
    view.show(poll);
    stop.hidden = !poll?.open;
  }

  // The event is for viewers who are watching, the channel state for those who join later.
  async function publish(poll) {
    await sdk.setChannelState({ poll });
    sdk.send('poll', poll);
    show(poll);
  }

  onSubmit(newPoll, async ({ question, options }) => {
    const texts = options.split('\n').map((each) => each.trim());
    // A new id for each poll, so that it starts without votes.
    await publish({ id: `poll-${Date.now()}`, question, options: texts.filter(Boolean), open: true });
  });

  onClick(stop, () => publish({ ...view.poll, open: false }));

  onSubmit(announcement, ({ text }) => {
    sdk.send('announcement', { text });
    announcement.reset();
    showMessage('Sent to all viewers.');
  });

  onSubmit(enterPin, async ({ pin }) => {
    await sdk.validateCode(pin.toUpperCase());
    enterPin.reset();
    showMessage('The game is linked to your channel.');
  });

  onClick(showPin, async () => {
    const { token } = await sdk.signedRequest('POST', 'gamelink/token', {});
    document.querySelector('#pin').textContent = token;
    showMessage('Type the PIN into the game within five minutes.');
  });

  const { poll } = await sdk.getChannelState();
  show(poll);
  view.keepCounting();
}

attempt(start);
