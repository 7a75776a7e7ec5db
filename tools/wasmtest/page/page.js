// Starts the worker and posts its output to the server. Only one piece is posted at a time, so that
// the pieces stay in order. The worker does not wait for the posts.
"use strict";

let posted = Promise.resolve();
const post = (path, body) => {
	posted = posted.then(() => fetch(path, { method: "POST", body }));
};

let waiting = []; // pieces for the same file that arrived while a post ran
let waitingFile = 0;
const flush = () => {
	if (waiting.length > 0) {
		post("output/" + waitingFile, new Blob(waiting));
		waiting = [];
	}
};

const write = (file, bytes) => {
	if (file !== waitingFile) {
		flush();
		waitingFile = file;
	}
	waiting.push(bytes);
	if (waiting.length === 1) {
		posted.then(flush);
	}
};

// Errors after the end are ignored, for example an event for a program that has ended.
let ended = false;
const exit = (code, why) => {
	if (ended) {
		return;
	}
	ended = true;
	if (why) {
		write(2, "wasmtest: " + why + "\n");
	}
	flush();
	post("exit/" + code);
};

const worker = new Worker("worker.js", { name: "wasmtest" });
worker.onmessage = ({ data }) => {
	if ("exit" in data) {
		exit(data.exit, data.why);
	} else {
		write(data.file, data.bytes);
	}
};
worker.onerror = (event) => exit(2, "the worker failed: " + (event.message || "it could not be loaded"));
worker.onmessageerror = () => exit(2, "a message from the worker could not be read");
