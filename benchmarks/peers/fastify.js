// The same poll in memory, as a fastify user would write it for production: no logging, schemas for the body and the
// response, so that both are checked and serialized by generated code. No token: the header `X-User` names the voter.
const fastify = require("fastify")({ logger: false });

class Poll {
  constructor() {
    this.votes = new Map();
    this.counts = new Map();
  }

  cast(user, value) {
    const previous = this.votes.get(user);
    if (previous !== undefined) this.counts.set(previous, this.counts.get(previous) - 1);
    this.votes.set(user, value);
    this.counts.set(value, (this.counts.get(value) ?? 0) + 1);
    const count = this.votes.size;
    let sum = 0;
    let squares = 0;
    for (const [each, votes] of this.counts) {
      sum += each * votes;
      squares += each * each * votes;
    }
    const specific = Array.from({ length: 64 }, (_, index) => this.counts.get(index) ?? 0);
    const stddev = Math.sqrt(count * squares - sum * sum) / count;
    const stats = { stddev, mean: sum / count, sum, count, specific };
    return { stats, ...stats, vote: value };
  }
}

const number = { type: "number" };
const stats = {
  stddev: number,
  mean: number,
  sum: { type: "integer" },
  count: { type: "integer" },
  specific: { type: "array", items: { type: "integer" } },
};
const schema = {
  querystring: { type: "object", properties: { id: { type: "string", default: "default" } } },
  headers: { type: "object", required: ["x-user"], properties: { "x-user": { type: "string" } } },
  body: {
    type: "object",
    required: ["value"],
    properties: { value: { type: "integer", minimum: -99, maximum: 99 } },
  },
  response: {
    200: { type: "object", properties: { stats: { type: "object", properties: stats }, ...stats, vote: number } },
  },
};
const polls = new Map();

fastify.post("/v1/e/vote", { schema }, async (request) => {
  let poll = polls.get(request.query.id);
  if (!poll) polls.set(request.query.id, (poll = new Poll()));
  return poll.cast(request.headers["x-user"], request.body.value);
});

fastify.listen({ host: "127.0.0.1", port: Number(process.argv[2]) });
