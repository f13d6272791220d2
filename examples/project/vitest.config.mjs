import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: { include: ['tests/vitest/*.test.mjs'], pool: 'forks', minWorkers: 4, maxWorkers: 4 },
});
