// Package sgt reads and writes stackglass' own container of traces, .sgt. It is a
// file of LZ4 frames, whose bytes FORMAT.md draws and takes an example of apart.
//
// What a program does is told in steps. A step is one execution of a block of
// code, and says the addresses that the block's sites touched; everything else
// (kinds, sizes, source lines) stands once in tables. A coder predicts each
// step: the block that followed last time, and of every value either that it
// grows by its stride or that it lies where it did beside the value before it.
// Runs of steps that are as predicted cost a byte or two however long they are.
//
//  1. [Writer] takes modules' tables and steps, and makes chunks of a thread's
//     steps. A capture does the same while the program runs.
//  2. [Importer] makes steps of the rows of traces that know no blocks.
//  3. [Reader] gives rows, from front to back, in the order of tickets: what ran
//     when, over all threads.
//  4. [Source] reads at any place by the index, and shares a trace among workers.
//  5. [Rewriter] takes a part of a container over into another; [Look] and
//     [Check] tell what is in one, and what is wrong with it.
//
// The kernel is [decoder.inTurn] for irregular code, [decoder.inSteps] for it in
// WebAssembly, and [decoder.loop] where blocks go round: there every value is an
// arithmetic progression, so that columns are filled without looking at steps at
// all. The idea of predicting by stride or by link is that of value predictors (Sazeides and Smith, The
// Predictability of Data Values, MICRO 1997) and of trace compressors built on
// them (Burtscher, VPC3, SIGMETRICS 2004); instead of choosing among many
// predictors by the value, each value keeps two and switches on a miss.
package sgt

// Version is the newest version of the container that this package writes and
// reads.
const Version = 1

// MaxValues is the most values that the sites of one block may have together.
const MaxValues = 48
