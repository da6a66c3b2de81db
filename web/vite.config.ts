/// <reference types="vitest/config" />
import { cpSync } from "node:fs";
import react from "@vitejs/plugin-react";
import { defineConfig, type Plugin } from "vite";

// Swagger UI is served from the binary, so its files travel with the build.
function swagger(): Plugin {
  return {
    name: "swagger-ui",
    closeBundle() {
      for (const file of ["swagger-ui.css", "swagger-ui-bundle.js", "swagger-ui-standalone-preset.js", "favicon-32x32.png"]) {
        cpSync(`node_modules/swagger-ui-dist/${file}`, `dist/swagger/${file}`);
      }
    },
  };
}

export default defineConfig({
  plugins: [react(), swagger()],
  build: { emptyOutDir: false, chunkSizeWarningLimit: 900 },
  server: { proxy: { "/v1": "http://127.0.0.1:7420" } },
  test: { environment: "happy-dom" },
});
