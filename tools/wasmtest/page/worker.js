// Runs the test binary. Its output is sent in messages, which the page receives while the binary
// computes.
"use strict";

importScripts("wasm_exec.js");

fs.writeSync = (file, bytes) => {
	postMessage({ file, bytes: bytes.slice() });
	return bytes.length;
};
fs.write = (file, bytes, offset, length, position, callback) => {
	callback(null, fs.writeSync(file, bytes.subarray(offset, offset + length)));
};
process.cwd = () => "/";

// An empty file system. Fuzz tests look for testdata/fuzz, and must see that it does not exist,
// instead of an error of the file system.
fs.constants = { O_WRONLY: 1, O_RDWR: 2, O_CREAT: 64, O_EXCL: 128, O_TRUNC: 512, O_APPEND: 1024, O_DIRECTORY: 65536 };
for (const call of ["open", "stat", "lstat", "readdir"]) {
	fs[call] = (...args) => args.at(-1)(Object.assign(new Error("no such file"), { code: "ENOENT" }));
}

(async () => {
	const { args, env } = await (await fetch("program")).json();
	const go = new Go();
	go.argv = args;
	go.env = env;
	let code = 2; // the exit code of a program that dies without setting one
	go.exit = (c) => { code = c; };
	const { instance } = await WebAssembly.instantiateStreaming(fetch("test.wasm"), go.importObject);
	await go.run(instance);
	postMessage({ exit: code });
})().catch((err) => postMessage({ exit: 2, why: String(err && err.stack || err) }));
