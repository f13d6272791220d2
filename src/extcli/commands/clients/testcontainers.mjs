// Starts the service in a container for a run of tests. Build its image once: docker build -t extcli CHECKOUT
import { randomUUID } from 'node:crypto';
import { GenericContainer, Wait } from 'testcontainers';

process.env.EXTCLI_CONTROL_TOKEN ||= randomUUID(); // for the control API of a service in a container
export const container = await new GenericContainer('extcli')
  .withEnvironment({ EXTCLI_SERVE_CONTROL_TOKEN: process.env.EXTCLI_CONTROL_TOKEN })
  .withExposedPorts(8282)
  .withWaitStrategy(Wait.forHealthCheck())
  .start();
process.env.EXTCLI_URL = `http://${container.getHost()}:${container.getMappedPort(8282)}`;
