// Loads Go programs. They are served in a folded form that compresses better. This script unfolds
// the code as it arrives (see tools/internal/wasmcode/fold.go). Before the program starts, it
// unfolds the table of functions (see tools/sitebuild/fold.go; all numbers in the table are words of
// 32 bits, and all addresses count such words). The table does not contain the names of functions
// (see symbols.go), which are fetched if a program dies. Programs that are not folded are not
// changed. tools/sitebuild appends this script to wasm_exec.js.
"use strict";

{
	const FOLDING = 4, MAGIC = 0x646c6f66, OLD = 0x80000000, NONE = 0xffffffff;
	// Positions of words in a record, the length of its fixed part, the number of buckets per
	// function, and the length of a bucket.
	const NAME = 1, STACK = 4, OTHERS = 7, IDS = 10, HEAD = 11, BUCKETS = 16, BUCKET = 5;
	const LINK = 48, LINK_BYTES = 128; // position and length, in bytes, of the name of the file with the names of functions

	const unfold = (words) => {
		const [magic, table, length, functions, first, buckets, sum, names] = words.slice(FOLDING, FOLDING + 8);
		if (magic !== MAGIC) return;
		words.fill(0, FOLDING, FOLDING + 8);
		const folded = words.slice(table, table + length);
		words.fill(0, table, table + length);

		const starts = new Uint32Array(functions);
		const others = folded.subarray(0, functions);
		const data = folded.slice(functions, 2 * functions);
		const bytes = new Uint8Array(words.buffer, 4 * names);
		let end = table + 2 * functions + 1, name = 1;
		for (let i = 0; i < functions; i++) {
			end += end & 1;
			starts[i] = end;
			words[table + 2 * i] = words[end] = first + i;
			words[table + 2 * i + 1] = 4 * (end - table);
			words[end + OTHERS] = others[i];
			words[end + IDS] = data[i];
			words[end + NAME] = name;
			const text = (folded[2 * functions + i] ? "runtime." : "go.") + i;
			for (let n = 0; n < text.length; n++) bytes[name++] = text.charCodeAt(n);
			name++;
			data[i] >>>= 24;
			end += HEAD + others[i] + data[i];
		}
		words[table + 2 * functions] = first + functions;

		let next = 3 * functions;
		// field restores one word of every record that has more than number words of this kind.
		const field = (offsets, many, number) => {
			let largest = 0;
			for (let i = 0; i < functions; i++) {
				if (number >= many[i]) continue;
				let word = folded[next++];
				if (offsets && word !== NONE) {
					word = word < OLD ? largest += word : word - OLD;
				}
				words[starts[i] + number] = word;
			}
		};
		const head = new Uint32Array(functions).fill(HEAD);
		for (let word = NAME + 1; word < IDS; word++) {
			if (word !== OTHERS) field(word === STACK, head, word);
		}
		for (const [before, many] of [[head, others], [others, data]]) {
			let most = 0;
			for (let i = 0; i < functions; i++) {
				starts[i] += before[i];
				if (many[i] > most) most = many[i];
			}
			for (let number = 0; number < most; number++) field(true, many, number);
		}

		for (let i = 0, at = buckets; i < functions; i++) {
			for (let n = i < functions - 1 ? BUCKETS : 1; n > 0; n--, at += BUCKET) words[at] = i;
		}
		check(words.subarray(table, end), sum);
	};

	const check = (words, sum) => {
		let got = 2166136261;
		for (let i = 0; i < words.length; i++) got = Math.imul(got ^ words[i], 16777619);
		if (got >>> 0 !== sum) throw new Error("the program's table of functions is damaged; reload the page");
	};

	// linked reads the name of the file with the names of a program's functions, and removes it from
	// the program's memory.
	const linked = (bytes) => {
		const link = bytes.slice(0, bytes.indexOf(0));
		bytes.fill(0);
		return String.fromCharCode(...link);
	};

	// The address of this script's folder. It is empty in workers, whose addresses are relative to it.
	const folder = globalThis.document && document.currentScript ? document.currentScript.src.replace(/[^/]*$/, "") : "";
	const decoder = new TextDecoder();

	// explain repeats the last words of a program that died, with the names of functions.
	const explain = async (said, file) => {
		const response = await fetch(folder + file);
		if (!response.ok) throw new Error(`${file}: status ${response.status}`);
		const names = (await response.text()).split("\n");
		console.error("With the names of functions:\n" + said.replace(/\b(?:go|runtime)\.(\d+)/g, (number, i) => names[i] || number));
	};

	// Unfolding the code. tools/internal/wasmcode/fold.go folds it, and traverses it in the same way.
	// In the code, bytes from PHRASE on replace sequences of instructions (see phrases.go there).
	const MARK = "folded", HEAD_BYTES = 8, CODE = 10, FIRST = 0x1000, PHRASE = 0xc5, GROUP = 64;

	// The kinds of operands of an instruction. From BLOCK on, the value of the operand is needed; all
	// other operands are skipped.
	const ONE = 1, TWO = 2, FLOAT = 3, DOUBLE = 4, MORE = 5, END = 6, BLOCK = 7, BRANCH = 8, TABLE = 9, ENTRY = 10, I64 = 11;
	const kinds = new Uint8Array(256);
	for (const [kind, from, to] of [
		[BLOCK, 0x02, 0x04], [END, 0x0b, 0x0b], [ONE, 0x0c, 0x0c], [BRANCH, 0x0d, 0x0d], [TABLE, 0x0e, 0x0e], [ONE, 0x10, 0x10], [TWO, 0x11, 0x11],
		[ONE, 0x20, 0x24], [TWO, 0x28, 0x3e], [ONE, 0x3f, 0x40], [ONE, 0x41, 0x41], [I64, 0x42, 0x42], [FLOAT, 0x43, 0x43],
		[DOUBLE, 0x44, 0x44], [MORE, 0xfc, 0xfc],
	]) kinds.fill(kind, from, to + 1);

	// unfoldFunction unfolds the code of the function with a given number, which begins at the position
	// at, and writes it to out, from position from on. It returns the positions behind the code in both
	// arrays. The code is parsed in out: each byte is copied to out when the parser reaches it. Much time
	// is spent here, so it is a single loop without calls.
	const unfoldFunction = (code, at, out, from, number, phrases) => {
		let address = number << 16, depth = 0, entries = 0, last = 0, op = 0;
		let copied = from; // the end of out
		let groups = out[copied++] = code[at++]; // groups of local variables
		while (groups > 0) {
			while ((out[copied++] = code[at++]) > 127);
			out[copied++] = code[at++];
			groups--;
		}
		let place = copied; // the position of the parser in out
		while (depth >= 0) { // the last instruction of a function closes its outermost block
			const before = op;
			let kind = ENTRY;
			if (entries === 0) {
				if (place === copied) {
					op = code[at++];
					if (op < PHRASE || op === 0xfc) {
						out[copied++] = op;
					} else {
						const phrase = phrases[op - PHRASE];
						for (let i = 0; i < phrase.length; i++) out[copied++] = phrase[i];
					}
				}
				kind = kinds[op = out[place++]];
			}
			if (kind === 0) continue;
			if (kind < BLOCK) {
				// Skip numbers of variable length (n), and then some bytes (more).
				let n = 0, more = 0;
				if (kind === ONE) {
					n = 1;
				} else if (kind === TWO) {
					n = 2;
				} else if (kind === END) {
					depth--;
				} else if (kind === MORE) {
					if (place === copied) out[copied++] = code[at++];
					op = out[place++];
					more = op > 7 ? op === 10 ? 2 : 1 : 0; // memory.copy, and memory.fill
				} else {
					more = kind === FLOAT ? 4 : 8;
				}
				while (n > 0) {
					if (place === copied) out[copied++] = code[at++];
					if (out[place++] < 128) n--;
				}
				for (; more > 0; more--) {
					if (place === copied) out[copied++] = code[at++];
					place++;
				}
				continue;
			}
			const start = place;
			let n = 0, bits = 0;
			for (let b = 128; b > 127; bits += 7) {
				if (place === copied) out[copied++] = code[at++];
				b = out[place++];
				n |= (b & 127) << bits;
			}
			if (kind === I64) { // the return address of a call
				if (bits !== 35 || out[place - 1] !== 0 || out[place - 2] !== 128) continue;
				n = address += n;
			} else if (bits > 28) {
				continue;
			} else if (kind === BRANCH) { // the branch after a call, which ends with local.set
				if (before !== 0x21) continue;
				n = depth - n;
			} else if (kind === ENTRY) {
				entries--;
				last = n = last + n & (1 << bits) - 1;
			} else {
				if (kind === BLOCK) {
					depth++;
				} else {
					entries = n + 1;
					last = 0;
				}
				continue;
			}
			for (let i = start; i < place; i++, n >>>= 7) out[i] = out[i] & 128 | n & 127;
		}
		return [at, copied];
	};

	// unfoldCode receives a file in pieces, and passes on its complete parts. Files without the mark
	// of folded code are not changed.
	const unfoldCode = () => {
		let rest = new Uint8Array(0), at = 0;
		let pass = -1; // number of bytes that are passed on unchanged before the next section or function
		let functions = -1, number = FIRST;
		let out = new Uint8Array(1 << 16), size = 0; // the unfolded parts
		let longest = 1;
		const phrases = [];

		// reserve makes room for further bytes in out.
		const reserve = (bytes) => {
			if (size + bytes <= out.length) return;
			const larger = new Uint8Array(2 * (size + bytes));
			larger.set(out.subarray(0, size));
			out = larger;
		};
		const copy = (to) => {
			reserve(to - at);
			out.set(rest.subarray(at, to), size);
			size += to - at;
			at = to;
		};

		// head reads several numbers from a place on. It returns null if not all of them have arrived.
		const head = (place, many) => {
			const numbers = [];
			for (let n = 0, shift = 0; numbers.length < many; shift += 7) {
				if (place >= rest.length) return null;
				const b = rest[place++];
				n += (b & 127) * 2 ** shift;
				if (b < 128) {
					numbers.push(n);
					n = 0;
					shift = -7;
				}
			}
			return [place, ...numbers];
		};
		// readMark reads the section that contains the phrases, which is missing if a file is not folded.
		const readMark = () => {
			const found = head(HEAD_BYTES, 3);
			if (!found) return false;
			const [name, , length] = found, end = name - 1 + length;
			if (rest.length < name + MARK.length) return false;
			if (String.fromCharCode(...rest.subarray(name, name + MARK.length)) !== MARK) {
				pass = Infinity;
				return true;
			}
			if (rest.length < end) return false;
			for (let place = name + MARK.length; place < end; place += 1 + rest[place]) {
				phrases.push(rest.slice(place + 1, place + 1 + rest[place]));
				longest = Math.max(longest, rest[place]);
			}
			pass = HEAD_BYTES;
			return true;
		};
		// unfoldGroup unfolds a group of functions. The length of a function's unfolded code is written
		// before the code, and is known after it.
		const unfoldGroup = (to) => {
			const most = 5; // bytes of a length
			reserve((most + longest) * (to - at));
			for (const last = Math.max(functions - GROUP, 0); functions > last; functions--) {
				const start = size + most;
				const [next, end] = unfoldFunction(rest, at, out, start, number++, phrases);
				let length = end - start;
				for (; length > 127; length >>>= 7) out[size++] = length & 127 | 128;
				out[size++] = length;
				out.copyWithin(size, start, end);
				size += end - start;
				at = next;
			}
		};
		// step passes on one part if it has arrived.
		const step = () => {
			if (pass < 0) return readMark();
			if (pass > 0) {
				const n = Math.min(pass, rest.length - at);
				pass -= n;
				copy(at + n);
				return n > 0;
			}
			if (functions > 0) {
				const found = head(at, 1);
				if (!found || found[0] + found[1] > rest.length) return false;
				at = found[0];
				unfoldGroup(at + found[1]);
			} else {
				const found = head(at, rest[at] === CODE ? 3 : 2);
				if (!found) return false;
				copy(found[0]);
				if (found.length === 4) functions = found[3];
				else pass = found[2];
			}
			return true;
		};
		return new TransformStream({
			transform(piece, to) {
				const whole = new Uint8Array(rest.length + piece.length);
				whole.set(rest);
				whole.set(piece, rest.length);
				rest = whole;
				at = size = 0;
				while (step());
				if (size > 0) to.enqueue(out.slice(0, size));
				rest = rest.subarray(at);
			},
			flush(to) { to.enqueue(rest); },
		});
	};

	globalThis.unfoldProgram = (body) => body.pipeThrough(unfoldCode());

	// compileProgram loads the program at an address and compiles it. The service worker stores it
	// unfolded.
	globalThis.compileProgram = async (address) => {
		const response = await fetch(address);
		if (!response.ok) throw new Error(`${address}: the server answered ${response.status}`);
		// Compiling while loading requires this type, and some hosts send a different one.
		const program = response.headers.has("X-Stackglass-Unfolded") ? response :
			new Response(unfoldProgram(response.body), { headers: { "Content-Type": "application/wasm" } });
		if (WebAssembly.compileStreaming) return WebAssembly.compileStreaming(program);
		return WebAssembly.compile(await program.arrayBuffer());
	};

	const run = Go.prototype.run;
	Go.prototype.run = async function (instance) {
		const memory = instance.exports.mem.buffer;
		unfold(new Uint32Array(memory));
		await new Promise((resolve) => setTimeout(resolve)); // let the page handle events
		const file = linked(new Uint8Array(memory, LINK, LINK_BYTES));
		let said = ""; // the output from the first error message on
		const write = globalThis.fs?.writeSync;
		if (file) {
			fs.writeSync = (fd, bytes) => {
				if (said.length < 1e5) {
					said += decoder.decode(bytes);
					said = said.slice(said.search(/panic: |fatal error: |$/));
				}
				return write.call(fs, fd, bytes);
			};
		}
		await run.call(this, instance);
		if (!said) return;
		// The worker may be ended as soon as this function returns. If the host does not answer in two
		// seconds, the names are left out.
		await Promise.race([
			explain(said, file).catch((err) => console.error("no names of functions: " + err.message)),
			new Promise((resolve) => setTimeout(resolve, 2000)),
		]);
	};
}
