// Starts the service in a container for a run of tests. Build its image once: docker build -t extcli CHECKOUT
import { GenericContainer, Wait } from 'testcontainers';

export const container = await new GenericContainer('extcli')
  .withExposedPorts(8282)
  .withWaitStrategy(Wait.forHealthCheck())
  .start();
process.env.EXTCLI_URL = `http://${container.getHost()}:${container.getMappedPort(8282)}`;
