// A poll on a page: { id, question, options, open }. Its votes are counted by the service, under its id.
import { attempt } from './extension.js';

// The service tells pages of no votes, so they ask.
const COUNT_EVERY_MS = 2000;

export class PollView {
  constructor(root, sdk, { canVote }) {
    this.sdk = sdk;
    this.canVote = canVote;
    this.poll = null;
    this.question = root.querySelector('#question');
    this.options = root.querySelector('.options');
    this.note = root.querySelector('.note');
  }

  // Shows a poll, or that there is none.
  show(poll) {
    this.poll = poll;
    this.question.textContent = poll ? poll.question : 'No poll yet';
    this.note.textContent = '';
    this.options.replaceChildren(...(poll ? poll.options.map((text, value) => this.optionOf(text, value)) : []));
    this.count();
  }

  optionOf(text, value) {
    const button = document.createElement('button');
    button.type = 'button';
    button.className = 'option';
    button.disabled = !this.canVote || !this.poll.open;
    button.append(spanOf('text', text), ' ', spanOf('share', ''));
    button.addEventListener('click', () => this.vote(value));
    return button;
  }

  vote(value) {
    return attempt(() => this.showVotesOf((poll) => this.sdk.vote(poll.id, value)));
  }

  // Counting goes on in the background: it neither hides what went wrong otherwise nor stops when it fails once.
  async count() {
    try {
      await this.showVotesOf((poll) => this.sdk.getVoteData(poll.id));
    } catch {
      this.note.textContent = 'Votes cannot be counted now.';
    }
  }

  // Shows the votes that `ask` finds, unless another poll has come meanwhile.
  async showVotesOf(ask) {
    const { poll } = this;
    const votes = poll && (await ask(poll));
    if (poll && poll === this.poll) {
      this.showVotes(votes);
    }
  }

  // `specific` counts the votes for each value; `vote` is the user's own, if there is one.
  showVotes({ specific, count, vote }) {
    [...this.options.children].forEach((option, value) => {
      const share = count ? Math.round((100 * specific[value]) / count) : 0;
      option.style.setProperty('--share', `${share}%`);
      option.querySelector('.share').textContent = `${share}%`;
      if (this.canVote) {
        option.setAttribute('aria-pressed', value === vote);
      }
    });
    this.note.textContent = `${count} ${count === 1 ? 'vote' : 'votes'}${this.poll.open ? '' : ' · closed'}`;
  }

  async keepCounting() {
    if (!document.hidden) {
      await this.count();
    }
    setTimeout(() => this.keepCounting(), COUNT_EVERY_MS);
  }
}

function spanOf(className, text) {
  const span = document.createElement('span');
  span.className = className;
  span.textContent = text;
  return span;
}
