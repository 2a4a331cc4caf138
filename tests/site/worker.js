// Search in pages that are opened from a disk: browsers start no worker for a `file:` address, so a frame of the page runs the worker's script.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(address) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      const inner = frame.contentWindow;
      inner.postMessage = (data) => {
        const event = new MessageEvent("message", { data });
        this.dispatchEvent(event);
        this.onmessage?.(event);
      };
      inner.addEventListener("error", (event) => this.onerror?.(event));
      const script = inner.document.createElement("script");
      this.frame = frame;
      this.ready = new Promise((resolve) => script.addEventListener("load", resolve));
      script.src = new URL(address, document.baseURI);
      inner.document.body.append(script);
    }

    postMessage(data) {
      this.ready.then(() => this.frame.contentWindow?.dispatchEvent(new MessageEvent("message", { data: structuredClone(data) })));
    }

    terminate() {
      this.frame.remove();
    }
  };
}
