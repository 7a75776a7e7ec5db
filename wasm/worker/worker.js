// Bootstrap of the workers, analysis and unpackers: loads Go's wasm_exec.js and
// the program, runs it, and tells whoever started the worker when it ended. A Go
// program that runs out of memory ends without any event there, so "exited" is a
// message.
//
// Served beside wasm_exec.js and app.wasm, which holds the page's program and the
// analysis worker's. Other addresses, relative to this script, go into its own:
// worker.js?exec=wasm_exec.1a2b.js&wasm=app.3c4d.wasm
// A worker that was made from a blob has them behind a #: nothing may stand behind
// a ? there.
"use strict";

// Messages that come before the program listens; it takes them over.
self.earlyMessages = [];
self.onmessage = (event) => self.earlyMessages.push(event);

{
	const settings = new URLSearchParams(self.location.search || self.location.hash.slice(1));
	const decoder = new TextDecoder();
	let lastWords = ""; // from the first sign of trouble on

	importScripts(settings.get("exec") || "wasm_exec.js");

	// The runtime writes why it dies where nobody would see it.
	const write = fs.writeSync;
	fs.writeSync = (file, bytes) => {
		if (lastWords.length < 300) {
			const words = lastWords + decoder.decode(bytes);
			lastWords = words.slice(words.search(/panic: |fatal error: |$/));
		}
		return write.call(fs, file, bytes);
	};

	const load = async (address, imports) => {
		const response = await fetch(address);
		if (!response.ok) {
			throw new Error(`${address}: the server answered ${response.status}`);
		}
		// Some hosts do not know the type, which streaming insists on.
		if (WebAssembly.instantiateStreaming && response.headers.get("Content-Type") === "application/wasm") {
			return WebAssembly.instantiateStreaming(response, imports);
		}
		return WebAssembly.instantiate(await response.arrayBuffer(), imports);
	};

	const run = async () => {
		const go = new Go();
		let code = 2; // a program that dies without a word exits so
		go.exit = (c) => { code = c; };
		const { instance } = await load(settings.get("wasm") || "app.wasm", go.importObject);
		await go.run(instance);
		return code;
	};

	run().then(
		(code) => self.postMessage({ exited: code, why: lastWords.split("\n", 1)[0] }),
		(err) => self.postMessage({ exited: -1, why: String(err && err.message || err) }),
	);
}
