import "@fontsource-variable/inter";
import "@fontsource/jetbrains-mono";
import "@xyflow/react/dist/style.css";
import "./styles.css";
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { BrowserRouter } from "react-router";
import { App } from "./app";

const queries = new QueryClient({
  defaultOptions: { queries: { refetchInterval: 1000, retry: false, staleTime: 500 } },
});

createRoot(document.getElementById("root")!).render(
  <StrictMode>
    <QueryClientProvider client={queries}>
      <BrowserRouter>
        <App />
      </BrowserRouter>
    </QueryClientProvider>
  </StrictMode>,
);
