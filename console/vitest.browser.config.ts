import { defineConfig } from 'vitest/config';

// End to end: a real Chromium against a stack that is up. `tests/system/test_console.py` brings both together.
export default defineConfig({
  test: {
    include: [process.env['CONSOLE_STORIES'] ?? 'browser/**/*.test.ts'],
    environment: 'node',
    testTimeout: 800_000, // ends a story that hangs; the stories judge what is slow
    hookTimeout: 300_000,
    fileParallelism: false,
    retry: 0,
  },
});
