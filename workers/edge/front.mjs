// The entry point for Cloudflare. The asset binding serves the files of the site. This saves ten
// milliseconds per file, because no Go program is started. Package edge answers all other requests:
// requests for paths with computed answers, requests that send data, and requests for paths
// without a file.
import program from "../../build/edge/worker.mjs";

const answered = /^\/(healthz|version|upload\/?)$/;

export default {
  async fetch(request, env, ctx) {
    const sends = request.body !== null || !["GET", "HEAD"].includes(request.method);
    if (!sends && !answered.test(new URL(request.url).pathname)) {
      const file = await env.ASSETS.fetch(request);
      if (file.status !== 404) return file;
    }
    return program.fetch(request, env, ctx);
  },
};
