// Runs a script's main function and prints its result as one JSON object.
'use strict';

// The SDK's timers keep the process alive, so it has to exit.
function run(main) {
  main().then(
    (result) => process.stdout.write(JSON.stringify(result), () => process.exit(0)),
    (error) => {
      process.stderr.write(`${error.stack || JSON.stringify(error)}\n`, () => process.exit(1));
    },
  );
}

module.exports = { run };
