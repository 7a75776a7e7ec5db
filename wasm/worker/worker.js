// The bootstrap script of the workers (analysis workers and decompressors). It loads Go's
// wasm_exec.js and the program, runs the program, and sends the message "exited" when it has ended.
// The message is needed because a Go program that runs out of memory ends without an event on the
// page.
//
// It is served beside wasm_exec.js and app.wasm, which is the program of the page and of the
// analysis worker. Its own address can contain other addresses, relative to this script:
// worker.js?exec=wasm_exec.1a2b.js&wasm=app.3c4d.wasm For a worker that was created from a blob,
// they follow a #, because the URL of a blob cannot contain a ?.
"use strict";

// Messages that arrive before the program listens. The program fetches them later.
self.earlyMessages = [];
self.onmessage = (event) => self.earlyMessages.push(event);

{
	const settings = new URLSearchParams(self.location.search || self.location.hash.slice(1));
	const decoder = new TextDecoder();
	let lastWords = ""; // the output from the first error message on

	importScripts(settings.get("exec") || "wasm_exec.js");

	// When the Go runtime dies, it writes the reason to a file that nobody would see.
	const write = fs.writeSync;
	fs.writeSync = (file, bytes) => {
		if (lastWords.length < 300) {
			const words = lastWords + decoder.decode(bytes);
			lastWords = words.slice(words.search(/panic: |fatal error: |$/));
		}
		return write.call(fs, file, bytes);
	};

	// A helper receives the compiled program from the worker that started it.
	const given = new Promise((resolve) => {
		self.addEventListener("message", (event) => {
			if (event.data && event.data.program instanceof WebAssembly.Module) resolve(event.data.program);
		});
	});

	// compileProgram is missing if wasm_exec.js is Go's own script. The program is then not folded.
	const compile = self.compileProgram || (async (address) => {
		const response = await fetch(address);
		if (!response.ok) throw new Error(`${address}: the server answered ${response.status}`);
		return WebAssembly.compile(await response.arrayBuffer());
	});

	const tellDeath = (err) => self.postMessage({ exited: -1, why: String(err && err.message || err) });

	const run = async () => {
		const go = new Go();
		let code = 2; // the exit code of a program that dies without setting one
		go.exit = (c) => { code = c; };
		// An exception that the program throws within a promise causes no error event on the worker.
		// Without this message, the starter of the worker would wait for ever.
		const resume = go._resume;
		go._resume = () => {
			try {
				return resume.call(go);
			} catch (err) {
				tellDeath(err);
				throw err;
			}
		};
		const module = await (self.name === "helper" ? given : compile(settings.get("wasm") || "app.wasm"));
		if (self.name === "compiler") { // the page runs the program, and compiling it there would delay events
			self.postMessage({ program: module });
			return 0;
		}
		const instance = await WebAssembly.instantiate(module, go.importObject);
		self.program = module;
		self.memory = instance.exports.mem; // the program reads its size here
		await go.run(instance);
		return code;
	};

	run().then(
		(code) => self.postMessage({ exited: code, why: lastWords.split("\n", 1)[0] }),
		tellDeath,
	);
}
