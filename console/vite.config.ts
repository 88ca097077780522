import react from '@vitejs/plugin-react';
import { defineConfig } from 'vitest/config';

export default defineConfig({
  plugins: [react()],
  build: {
    target: 'es2022',
    assetsInlineLimit: 0, // nothing inline: the content security policy allows files of ours only
    modulePreload: { polyfill: false },
    rollupOptions: { input: ['index.html', 'reference.html'] },
    chunkSizeWarningLimit: 2_000,
  },
  test: { include: ['src/**/*.test.ts'], environment: 'node', hookTimeout: 120_000, testTimeout: 60_000 }, // a busy machine imports slowly
});
