import { describe, expect, it } from "vitest";
import { visible } from "./window";

const view = { count: 10_000, height: 32, open: -1, extra: 0, top: 0, bottom: 800, beyond: 10 };

describe("a long list", () => {
  it("draws what is seen and a little more", () => {
    expect(visible(view)).toEqual({ from: 0, to: 35 });
    expect(visible({ ...view, top: 32_000, bottom: 32_800 })).toEqual({ from: 990, to: 1035 });
  });
  it("ends where its rows end", () => {
    expect(visible({ ...view, top: 319_200, bottom: 320_000 })).toEqual({ from: 9965, to: 10_000 });
    expect(visible({ ...view, count: 3 })).toEqual({ from: 0, to: 3 });
    expect(visible({ ...view, count: 0 })).toEqual({ from: 0, to: 0 });
  });
  it("counts what an open row opens to", () => {
    const open = { ...view, open: 2, extra: 6400 };
    expect(visible({ ...open, top: 3200, bottom: 4000 })).toEqual({ from: 0, to: 13 });
    expect(visible({ ...open, top: 32_000 + 6400, bottom: 32_800 + 6400 })).toEqual({ from: 990, to: 1035 });
  });
  it("draws a little of a list that is below the screen", () => expect(visible({ ...view, top: -2000, bottom: -1200 })).toEqual({ from: 0, to: 10 }));
});
