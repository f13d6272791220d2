// The broadcaster's page before a stream: the question and its options, in the channel's config.
import { DEFAULTS, attempt, connect, say } from './extension.js';

attempt(async () => {
  const sdk = await connect('broadcaster');
  const form = document.querySelector('form');
  const { poll = DEFAULTS } = await sdk.getChannelConfig();
  form.question.value = poll.question;
  form.elements.options.value = poll.options.join('\n');
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    attempt(async () => {
      const options = form.elements.options.value.split('\n').map((each) => each.trim());
      await sdk.setChannelConfig({ poll: { question: form.question.value, options: options.filter(Boolean) } });
      say('Saved. It applies to the next round.');
    });
  });
});
