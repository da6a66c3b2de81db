import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { act, cleanup, fireEvent, render, screen } from "@testing-library/react";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Job } from "../api/client";
import { JobResult } from "./job-result";

/** A Source is an EventSource whose events the test sends. */
class Source extends EventTarget {
  static made: Source[] = [];
  open = true;
  onopen?: () => void;
  onerror?: () => void;

  constructor(readonly url: string) {
    super();
    Source.made.push(this);
  }
  close() {
    this.open = false;
  }
  send(type: string, data: unknown) {
    this.dispatchEvent(new MessageEvent(type, { data: JSON.stringify(data) }));
  }
  static get open() {
    return Source.made.filter((s) => s.open);
  }
  static asked() {
    const url = new URL(Source.open[0]!.url, "http://localhost");
    return { path: url.pathname, ...Object.fromEntries(url.searchParams) };
  }
}

const columns = [
  { name: "k", type: "BIGINT" },
  { name: "n", type: "BIGINT" },
];
const as_of = { checkpoint: 7, live: true };
const total = 300_000;
const large = (first = 0) => ({ columns, rows: Array.from({ length: 200 }, (_, i) => ({ k: first + i, n: 1 })), as_of, total });
const job = { name: "g", status: "RUNNING", attempt: 1, has_result: true } as Job;

const show = (job: Job) =>
  render(
    <QueryClientProvider client={new QueryClient({ defaultOptions: { queries: { retry: false } } })}>
      <JobResult job={job} />
    </QueryClientProvider>,
  );
const drawn = () => act(() => new Promise<void>((done) => requestAnimationFrame(() => setTimeout(done))));
const rows = () => screen.getByRole("table", { name: "Result" }).querySelectorAll("tbody tr");

beforeEach(() => {
  Source.made = [];
  vi.stubGlobal("EventSource", Source);
});
afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
});

describe("a live result", () => {
  it("is followed by what the page shows of it, whatever its size", async () => {
    show(job);
    expect(Source.open).toHaveLength(1);
    expect(Source.asked()).toEqual({ path: "/v1/jobs/g/results", follow: "rows", limit: "200", numbers: "string" });
    Source.open[0]!.send("rows", large());
    await drawn();
    expect(rows()).toHaveLength(200);
    screen.getByText("300,000 rows, 200 shown · live");
  });

  it("is drawn once a frame, however often it changes", async () => {
    show(job);
    const parse = vi.spyOn(JSON, "parse");
    for (let i = 0; i < 100; i++) Source.open[0]!.send("rows", large(i));
    await drawn();
    expect(parse).toHaveBeenCalledTimes(1);
    expect(rows()[0]!.textContent).toBe("991");
  });

  it("is put in order by the server, which has all of its rows", async () => {
    show(job);
    Source.open[0]!.send("rows", large());
    await drawn();
    fireEvent.click(screen.getByRole("button", { name: "n" }));
    expect(Source.open).toHaveLength(1);
    expect(Source.asked()).toMatchObject({ order_by: '-"n"', limit: "200" });
    expect(rows()).toHaveLength(200); // the old ones, until the new ones are there
    fireEvent.click(screen.getByRole("button", { name: "n ↓" }));
    expect(Source.asked()).toMatchObject({ order_by: '"n"' });
  });

  it("is not put in order where that would hold up the job", async () => {
    show(job);
    Source.open[0]!.send("rows", large());
    await drawn();
    fireEvent.click(screen.getByRole("button", { name: "n" }));
    Source.open[0]!.send("rows", { ...large(), total: 1_000_001 });
    await drawn();
    expect(Source.open).toHaveLength(1);
    expect(Source.asked()).not.toHaveProperty("order_by");
    expect(screen.queryByRole("button", { name: /n/ })).toBeNull();
    expect(screen.getByRole("columnheader", { name: "n" }).title).toMatch(/would stand still/);
  });

  it("is not followed while nobody sees it", async () => {
    show(job);
    const hide = async (hidden: boolean) => {
      vi.spyOn(document, "hidden", "get").mockReturnValue(hidden);
      await act(async () => void document.dispatchEvent(new Event("visibilitychange")));
    };
    await hide(true);
    expect(Source.open).toHaveLength(0);
    await hide(false);
    expect(Source.open).toHaveLength(1);
  });

  it("says that it waits for the server, and that rows have not come", async () => {
    show(job);
    Source.open[0]!.send("rows", { columns, rows: [], as_of, total: 0 });
    await drawn();
    screen.getByText("No row yet.");
    act(() => Source.open[0]!.onerror?.());
    screen.getByText(/waiting for the server/);
  });
});

it("the result of a job that has ended is read once", async () => {
  const fetched = vi.fn(() => Promise.resolve(new Response(JSON.stringify({ ...large(), as_of: { checkpoint: 7, live: false } }))));
  vi.stubGlobal("fetch", fetched);
  show({ ...job, status: "STOPPED" } as Job);
  expect(Source.made).toHaveLength(0);
  await screen.findByText("300,000 rows, 200 shown");
  expect(fetched).toHaveBeenCalledExactlyOnceWith("/v1/jobs/g/results?limit=200&numbers=string", expect.anything());
});
