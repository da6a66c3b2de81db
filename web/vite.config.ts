/// <reference types="vitest/config" />
import { cpSync, rmSync } from "node:fs";
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

// The folder holds placeholder.html, which git keeps so that the Go code compiles before any
// build: so a build removes what the last one made, and not all that is there.
function afresh(): Plugin {
  return {
    name: "afresh",
    apply: "build",
    buildStart() {
      for (const made of ["assets", "swagger"]) rmSync(`dist/${made}`, { recursive: true, force: true });
    },
  };
}

export default defineConfig({
  plugins: [react(), afresh(), swagger()],
  build: { emptyOutDir: false, chunkSizeWarningLimit: 900 },
  server: { proxy: { "/v1": "http://127.0.0.1:7420" } },
  test: { environment: "happy-dom" },
});
