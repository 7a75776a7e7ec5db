// Puts the table of functions of a Go program back before the program begins: it is
// served folded, because it compresses badly as it is. tools/sitebuild/fold.go folds
// it, says how, and appends this script to wasm_exec.js. Programs that are not folded
// are left alone. All numbers are words of 32 bits and addresses of those.
"use strict";

{
	const FOLDING = 4, MAGIC = 0x646c6f66, OLD = 0x80000000, NONE = 0xffffffff;
	// Words of a record, and of the table of buckets for each function.
	const NAME = 1, STACK = 4, OTHERS = 7, IDS = 10, HEAD = 11, BUCKETS = 16, BUCKET = 5;

	const unfold = (words) => {
		const [magic, table, length, functions, first, buckets, sum] = words.slice(FOLDING, FOLDING + 7);
		if (magic !== MAGIC) return;
		words.fill(0, FOLDING, FOLDING + 7);
		const folded = words.slice(table, table + length);
		words.fill(0, table, table + length);

		const starts = new Uint32Array(functions);
		const others = folded.subarray(0, functions);
		const data = folded.slice(functions, 2 * functions);
		let end = table + 2 * functions + 1;
		for (let i = 0; i < functions; i++) {
			end += end & 1;
			starts[i] = end;
			words[table + 2 * i] = words[end] = first + i;
			words[table + 2 * i + 1] = 4 * (end - table);
			words[end + OTHERS] = others[i];
			words[end + IDS] = data[i];
			data[i] >>>= 24;
			end += HEAD + others[i] + data[i];
		}
		words[table + 2 * functions] = first + functions;

		let next = 2 * functions;
		// One word of the records that have more of its kind than number.
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
		for (let word = NAME; word < IDS; word++) {
			if (word !== OTHERS) field(word === NAME || word === STACK, head, word);
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

	const run = Go.prototype.run;
	Go.prototype.run = function (instance) {
		unfold(new Uint32Array(instance.exports.mem.buffer));
		return run.call(this, instance);
	};
}
