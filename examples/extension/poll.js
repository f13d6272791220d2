// Shows a poll: { id, question, options, open }. The service counts its votes under its id.
import { attempt } from './extension.js';

// The event `vote_update` comes every five seconds at most, so the page polls the service.
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

  // Shows a poll, or a note that there is none.
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

  // Runs in the background: a failure neither hides other errors nor stops the counting.
  async count() {
    try {
      await this.showVotesOf((poll) => this.sdk.getVoteData(poll.id));
    } catch {
      this.note.textContent = 'The votes are not available.';
    }
  }

  // Shows the votes that `request` returns, unless the poll has changed meanwhile.
  async showVotesOf(request) {
    const { poll } = this;
    const votes = poll && (await request(poll));
    if (poll && poll === this.poll) {
      this.showVotes(votes);
    }
  }

  // `specific` has the number of votes for each value; `vote` is the user's own vote, if any.
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
