import { Component, type ReactNode, Suspense } from "react";

/** Later shows a part of the dashboard whose script is read when it is needed, and says so where that fails. */
export class Later extends Component<{ children: ReactNode }, { failed: boolean }> {
  override state = { failed: false };

  static getDerivedStateFromError() {
    return { failed: true };
  }

  override render() {
    if (!this.state.failed) return <Suspense fallback={<p className="answer">Reading…</p>}>{this.props.children}</Suspense>;
    return (
      <div className="notice amber" role="alert">
        This page could not be shown: the server may be away, or another version by now.{" "}
        <button className="act" onClick={() => location.reload()}>
          Load it again
        </button>
      </div>
    );
  }
}
