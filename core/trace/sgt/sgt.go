// Package sgt reads and writes stackglass' own container of traces, .sgt: a file of LZ4 frames,
// which FORMAT.md describes with an example.
//
// A container stores steps. A step is one execution of a block of code, with the addresses that the block's
// sites touched; everything else (kinds, sizes, source lines) is stored once in tables. A coder predicts
// each step: the block that followed last time, and for every value that it either grows by its stride or
// keeps its distance from the value before. A run of predicted steps costs a byte or two, whatever its length.
//
//  1. [Writer] writes modules' tables, and makes chunks of a thread's steps. A capture does the
//     same while the program runs.
//  2. [Importer] makes steps of the rows of traces without blocks.
//  3. [Reader] returns rows, from front to back, in the order of tickets: in the order of execution
//     over all threads.
//  4. [Source] reads at any position by the index, and shares a trace among workers.
//  5. [Rewriter] copies a part of a container; [Look] and [Check] describe one and its errors.
//
// The kernels are [decoder.inTurn] for irregular code, [decoder.inSteps] for irregular code in
// WebAssembly, and [decoder.loop] for loops: there, every value is an arithmetic progression, so
// columns are filled without decoding steps. Predicting by stride or by link is the idea of value
// predictors (Sazeides and Smith, The Predictability of Data Values, MICRO 1997) and of trace
// compressors built on them (Burtscher, VPC3, SIGMETRICS 2004); instead of choosing among many
// predictors by the value, each value has two and switches on a miss.
package sgt

// Version is the newest version of the container that this package writes and reads.
const Version = 1

// MaxValues is the most values that the sites of one block may have together.
const MaxValues = 48
