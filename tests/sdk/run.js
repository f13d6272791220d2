// Runs a script's story and prints what it returns, as one JSON object.
'use strict';

// Timers of the SDK keep the process alive, hence the exits.
function run(story) {
  story().then(
    (said) => process.stdout.write(JSON.stringify(said), () => process.exit(0)),
    (error) => {
      process.stderr.write(`${error.stack || JSON.stringify(error)}\n`, () => process.exit(1));
    },
  );
}

module.exports = { run };
