// Site search runs in a worker, and browsers start none from a folder (file:): there, a frame of the page runs it.
// The name tells the generator to take this file instead of one from the network.
if (location.protocol === "file:") {
  window.Worker = class {
    constructor(url) {
      this.waiting = [];
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      this.room = this.frame.contentWindow;
      this.room.postMessage = (data) => setTimeout(() => this.onmessage?.({ data }));
      const script = this.room.document.createElement("script");
      script.src = url;
      script.onerror = (event) => this.onerror?.(event);
      script.onload = () => {
        this.ready = true;
        this.waiting.splice(0).forEach((data) => this.postMessage(data));
      };
      this.room.document.body.append(script);
    }

    postMessage(data) {
      if (this.ready) setTimeout(() => this.room.onmessage?.({ data }));
      else this.waiting.push(data);
    }

    terminate() {
      this.frame.remove();
    }
  };
}
