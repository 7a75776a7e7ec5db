// Package sgt reads and writes .sgt files, the native trace container of stackglass. A container is
// a file that consists of LZ4 frames. FORMAT.md describes the format with an example.
//
// A container stores steps. A step is one execution of a block of code, and contains the addresses
// that the block's sites accessed. All other data (kinds, sizes, source lines) is stored once, in
// tables. A coder predicts each step. The coder assumes that each block is followed by the same
// block as the last time, and that every value either grows by its stride, or differs from the
// preceding value by the same amount as the last time. A sequence of correctly predicted steps
// takes only one or two bytes, regardless of its length.
//
//  1. [Writer] writes the tables of modules, and groups the steps of each thread into chunks. While
//     an instrumented program runs, the capture runtime writes the program's container in the same
//     way.
//  2. [Importer] converts the rows of traces without blocks to steps.
//  3. [Reader] returns rows from the beginning of the file in ticket order, which is the order of
//     execution across all threads.
//  4. [Source] uses the index to read from any position, and to divide a trace among workers.
//  5. [Rewriter] copies a part of a container. [Look] describes a container, and [Check] reports
//     errors in a container.
//
// The performance-critical functions are [decoder.fillByRow] for irregular code,
// [decoder.fillByColumn] for irregular code in WebAssembly, and [decoder.loop] for loops. In a
// loop, every value is an arithmetic progression, so columns are filled without decoding the
// individual steps. The stride predictor and the link predictor are known from value prediction
// (Sazeides and Smith, The Predictability of Data Values, MICRO 1997) and from trace compressors
// that use such predictors (Burtscher, VPC3, SIGMETRICS 2004). This coder has only two predictors
// per site, and switches to the other predictor after a miss.
package sgt

// Version is the newest version of the container that this package writes and reads.
const Version = 1

// MaxValues is the maximum number of values of a block, summed over its sites.
const MaxValues = 48
