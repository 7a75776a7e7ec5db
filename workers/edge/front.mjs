// What Cloudflare calls first. The files of the site are handed out by the asset
// binding without starting a Go program, which would take ten milliseconds for each;
// everything else is answered by package edge: paths that have an answer of their
// own, whatever sends something, and what is no file.
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
